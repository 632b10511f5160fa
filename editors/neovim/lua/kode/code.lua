--- Code blocks of answers: yanked, inserted, or applied.
---
--- Rule: inserting is an edit of the user's. Applying a block to lines is a change of the agent's, to be reviewed; applying it
--- without lines is a prompt, so that the agent finds the place under the mode in force.

local api = vim.api

local M = {}

---@class kode.CodeBlock
---@field lines string[]
---@field language string

--- The block that an open session used last, for commands in other windows.
---@type kode.CodeBlock?
local latest

--- The code block that a row of some lines of Markdown is in.
---@param lines string[]
---@param row integer From 1.
---@return kode.CodeBlock?
function M.block_at(lines, row)
  local fence, language, first ---@type string?, string?, integer?
  for number, line in ipairs(lines) do
    local mark, info = line:match('^%s*(```+)%s*([^`%s]*)')
    if not mark then
      mark, info = line:match('^%s*(~~~+)%s*(%S*)')
    end
    if mark and not fence then
      fence, language, first = mark, info, number
    elseif mark and fence and mark:sub(1, 1) == fence:sub(1, 1) and #mark >= #fence and info == '' then
      if row >= first and row <= number then
        return { lines = vim.list_slice(lines, first + 1, number - 1), language = language or '' }
      end
      fence, language, first = nil, nil, nil
    end
  end
end

--- The code block under the cursor of a transcript.
---@param transcript kode.Transcript
---@param row integer
---@return kode.CodeBlock?
local function here(transcript, row)
  local block, _, first = transcript:block_at(row)
  local code = block and first and M.block_at(block.lines, row - first + 1)
  if not code then
    vim.notify('kode: no code block under the cursor', vim.log.levels.INFO)
    return nil
  end
  latest = code
  return code
end

--- Copies the code block under the cursor to the unnamed register, and to the clipboard where 'clipboard' has it.
---@param transcript kode.Transcript
---@param row integer
function M.yank(transcript, row)
  local code = here(transcript, row)
  if code then
    local register = vim.v.register
    vim.fn.setreg(register, code.lines, 'V')
    vim.notify(('kode: yanked %s'):format(require('kode.render').count(#code.lines, 'line')), vim.log.levels.INFO)
  end
end

--- Inserts the code block under the cursor below the cursor of the window beside the conversation.
---@param transcript kode.Transcript
---@param row integer
function M.insert(transcript, row)
  local code = here(transcript, row)
  local window = code and require('kode.context').window()
  if not code then
    return
  elseif not window then
    return vim.notify('kode: no window with a file to insert into', vim.log.levels.INFO)
  end
  local bufnr = api.nvim_win_get_buf(window)
  if not vim.bo[bufnr].modifiable then
    return vim.notify('kode: this buffer cannot be changed', vim.log.levels.WARN)
  end
  local below = api.nvim_win_get_cursor(window)[1]
  local is_empty = api.nvim_buf_line_count(bufnr) == 1 and api.nvim_buf_get_lines(bufnr, 0, 1, false)[1] == ''
  api.nvim_buf_set_lines(bufnr, is_empty and 0 or below, below, false, code.lines)
end

--- Has the agent put the code block under the cursor where it belongs.
---@param transcript kode.Transcript
---@param row integer
function M.apply(transcript, row)
  local code = here(transcript, row)
  if not code then
    return
  end
  local window = require('kode.context').window()
  local name = window and api.nvim_buf_get_name(api.nvim_win_get_buf(window)) or ''
  local where = 'the file it belongs to'
  if name ~= '' then
    where = ('%s (I have `%s` open)'):format(where, vim.fn.fnamemodify(name, ':.'):gsub('`', ''))
  end
  transcript:owner():send(('Put this code from your answer into %s. Change nothing else.'):format(where), {
    parts = { { type = 'pasted', text = table.concat(code.lines, '\n') } },
  })
end

--- Replaces lines of the current buffer by the code block used last, as a change to review.
---@param surface kode.Surface
---@param first integer From 1.
---@param last integer
function M.replace(surface, first, last)
  local code = latest
  if not code then
    return vim.notify('kode: no code block was yanked yet (gy in the transcript)', vim.log.levels.INFO)
  end
  surface:ask('agent/edits/propose', {
    uri = vim.uri_from_bufnr(0),
    range = { start = { line = first - 1, character = 0 }, ['end'] = { line = last, character = 0 } },
    text = table.concat(code.lines, '\n') .. '\n',
  })
end

return M
