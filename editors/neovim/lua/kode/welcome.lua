--- The empty conversation: what to write, or the missing parts before an answer can come.
---
--- Rule: it names one command for each thing that is missing, and is gone with the first item.

local M = {}

---@param surface kode.Surface
---@return kode.StyledLine[]
function M.lines(surface)
  local lines = { { text = '# Kode', group = 'KodeTitle' }, { text = '' } } ---@type kode.StyledLine[]
  local function add(text, group)
    lines[#lines + 1] = { text = text, group = group }
  end
  local problem = require('kode.models').problem(surface)
  if problem then
    add('No model can answer yet.', 'KodeNoticeWarning')
    add(require('kode.render').line(problem.message), 'KodeMeta')
    add('')
    add('- Set up a provider or a server of this machine: `:Kode setup`,')
    add('- choose a model that is configured: `:Kode model`,')
    add('- or try it without a key: `:Kode model demo`.')
    return lines
  end
  add('Write what you want below. `<CR>` in Normal mode or `<C-s>` sends it.')
  add('')
  add('- `@` names files and more, `/` commands')
  add('- `:Kode send` with a range sends lines')
  add('- `g?` lists the keys of each window')
  return lines
end

return M
