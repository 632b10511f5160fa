--- The sub-commands of `:Kode` about the attachments of the next prompt.
---
--- Rule: they send nothing; an attachment waits for the prompt, and is shown until then.

local surface_of = require('kode.surface')
local say = require('kode.command_common').say

---@param surface kode.Surface
---@param part? kode.InputPart
---@param problem? string
local function attach(surface, part, problem)
  if not part then
    return vim.notify('kode: ' .. problem, vim.log.levels.ERROR)
  end
  surface:attach(part)
  say(('attached %s'):format(require('kode.attach').label(part)))
end

---@type table<string, kode.SubCommand>
local commands = {}

commands.attach = {
  text = 'attach a file or image to the next prompt; in a file explorer: the entries of the line or range',
  complete = function(words)
    return vim.fn.getcompletion(words[#words], 'file')
  end,
  run = function(call)
    local explorer = require('kode.explorer')
    local paths = { call.text } ---@type string[]
    if call.text == '' and explorer.is_here() then
      paths = explorer.paths(call.range)
    end
    if #paths == 0 or paths[1] == '' then
      return say('which file? (:Kode paste attaches the image in the clipboard)')
    end
    surface_of.with(function(surface)
      for _, path in ipairs(paths) do
        attach(surface, require('kode.attach').file(path))
      end
    end)
  end,
}

commands.paste = {
  text = 'attach the image in the clipboard to the next prompt',
  run = function()
    surface_of.with(function(surface)
      require('kode.attach').clipboard(function(part, problem)
        attach(surface, part, problem)
      end)
    end)
  end,
}

commands.detach = {
  text = 'detach something from the next prompt',
  run = function()
    surface_of.with(function(surface)
      require('kode.pick').select(surface.parts, 'Detach', require('kode.attach').label, function(part)
        surface:detach(part)
      end)
    end)
  end,
}

return commands
