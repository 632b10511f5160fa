--- Side questions: `/btw` in the prompt and `:Kode btw`, answered in a float beside the conversation.
---
--- Rule: the float opens when the user asks and shows the answer as it comes. Nothing keeps it: closing the float before the answer
--- is there cancels the question.

local api = vim.api

--- The most lines of a float.
local MAX_LINES = 30

---@class kode.Aside
---@field id kode.AskId
---@field question string
---@field text string
---@field state "asking"|"answered"|"failed"
---@field buffer integer
---@field cancel? fun() Cancels the request.

local M = {}

---@type table<kode.AskId, kode.Aside>
local open = {}
local count = 0

--- The side question that a prompt is; nil for any other prompt.
---@param text string
---@return string?
function M.question(text)
  local rest = text:match('^%s*/btw(.*)$')
  if rest and (rest == '' or rest:match('^%s')) then
    return vim.trim(rest)
  end
end

---@param aside kode.Aside
---@return string[]
local function lines_of(aside)
  local quoted = vim.tbl_map(function(line)
    return '> ' .. line
  end, vim.split(aside.question, '\n', { plain = true }))
  local text = aside.text ~= '' and aside.text or aside.state == 'asking' and 'Asking…' or ''
  return vim.list_extend(vim.list_extend(quoted, { '' }), vim.split(text, '\n', { plain = true }))
end

--- Shows an aside as it is now. The cursor stays.
---@param aside kode.Aside
local function draw(aside)
  if not api.nvim_buf_is_valid(aside.buffer) then
    return
  end
  local lines = lines_of(aside)
  require('kode.scratch').fill(aside.buffer, lines)
  for _, window in ipairs(vim.fn.win_findbuf(aside.buffer)) do
    local width, rows = api.nvim_win_get_width(window), 0
    for _, line in ipairs(lines) do
      rows = rows + math.max(math.ceil(api.nvim_strwidth(line) / width), 1)
    end
    api.nvim_win_set_height(window, math.max(math.min(rows, MAX_LINES, vim.o.lines - 8), 1))
  end
end

---@param aside kode.Aside
local function show(aside)
  vim.cmd.stopinsert()
  -- As wide as prose reads well, whatever comes.
  local filler = { (' '):rep(math.min(78, vim.o.columns - 8)) }
  aside.buffer = require('kode.scratch').float(filler, { title = 'Side question', filetype = 'markdown' })
  vim.wo[0][0].linebreak = true
  vim.keymap.set('n', 'Y', function()
    vim.fn.setreg(vim.v.register, aside.text)
    require('kode.command_common').say('yanked the answer')
  end, { buffer = aside.buffer, desc = 'Yank the answer' })
  api.nvim_create_autocmd('BufWipeout', {
    buffer = aside.buffer,
    desc = 'kode: cancel the side question',
    callback = function()
      open[aside.id] = nil
      if aside.cancel then
        aside.cancel()
      end
    end,
  })
  draw(aside)
end

--- A piece of an answer has come.
---@param event kode.SideAnswer
function M.grow(event)
  local aside = open[event.askId]
  if aside and aside.state == 'asking' then
    aside.text = aside.text .. event.text
    draw(aside)
  end
end

--- Asks a side question of a session.
---@param surface kode.Surface
---@param question string
---@param failed? fun() Called when the server has not answered it.
function M.ask(surface, question, failed)
  if question == '' then
    if failed then
      failed()
    end
    return vim.notify('kode: write the side question behind /btw', vim.log.levels.WARN)
  end
  count = count + 1
  local id = ('nvim-%d-%d'):format(vim.uv.os_getpid(), count)
  ---@type kode.Aside
  local aside = { id = id, question = question, text = '', state = 'asking', buffer = 0 }
  open[id] = aside
  show(aside)
  local params = { sessionId = surface.session.id, question = question, askId = id }
  aside.cancel = surface.connection:cancellable('agent/session/ask', params, function(err, result)
    aside.cancel = nil
    if not open[id] then
      return
    end
    if err then
      aside.state, aside.text = 'failed', require('kode.connection').text_of(err)
      if failed then
        failed()
      end
    else
      local cut = result.isWhole and '' or '\n\n[The answer was cut at its limit.]'
      aside.state, aside.text = 'answered', result.answer .. cut
    end
    draw(aside)
  end)
end

return M
