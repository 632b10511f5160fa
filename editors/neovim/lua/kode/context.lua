--- The state of the editor that is sent with a prompt.
---
--- Rule: reads only. Windows of this plugin are left out.

local api = vim.api
local edits = require('kode.edits')

local M = {}

--- Open documents that are named, at most.
local MAX_OPEN = 50
--- Bytes of selected text that are sent, at most.
local MAX_SELECTED = 200000

---@param window integer
---@return boolean
local function is_work(window)
  local bufnr = api.nvim_win_get_buf(window)
  return vim.bo[bufnr].buftype == '' and api.nvim_win_get_config(window).relative == ''
end

--- The window that the user works in: the current one, else the previous one, else any with a file.
---@return integer?
function M.window()
  local candidates = { api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr('#')) }
  vim.list_extend(candidates, api.nvim_tabpage_list_wins(0))
  for _, window in ipairs(candidates) do
    if window ~= 0 and api.nvim_win_is_valid(window) and is_work(window) then
      return window
    end
  end
end

---@param bufnr integer
---@return boolean
local function has_file(bufnr)
  return vim.bo[bufnr].buftype == '' and api.nvim_buf_get_name(bufnr) ~= ''
end

--- Whole lines of a buffer as a range, from 1.
---@param first integer
---@param last integer
---@return kode.Range
local function line_range(first, last)
  return { start = { line = first - 1, character = 0 }, ['end'] = { line = last, character = 0 } }
end

--- The active document, its cursor and visible lines, and the open documents.
---@param encoding kode.Encoding
---@return kode.EditorContext?
function M.editor(encoding)
  local open = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if #open < MAX_OPEN and api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].buflisted and has_file(bufnr) then
      open[#open + 1] = vim.uri_from_bufnr(bufnr)
    end
  end
  local context = { openUris = #open > 0 and open or nil }
  local window = M.window()
  local bufnr = window and api.nvim_win_get_buf(window)
  if window and bufnr and has_file(bufnr) then
    local cursor = api.nvim_win_get_cursor(window)
    local at = edits.position(bufnr, cursor[1] - 1, cursor[2], encoding)
    local seen = api.nvim_win_call(window, function()
      return { vim.fn.line('w0'), vim.fn.line('w$') }
    end)
    context.activeUri = vim.uri_from_bufnr(bufnr)
    context.selection = { start = at, ['end'] = at }
    context.visibleRange = line_range(seen[1], seen[2])
  end
  return next(context) and context or nil
end

--- Lines of the current buffer as a part of a prompt.
---@param first integer
---@param last integer
---@return kode.InputPart?
function M.selection(first, last)
  local bufnr = api.nvim_get_current_buf()
  if not has_file(bufnr) then
    local text = table.concat(api.nvim_buf_get_lines(bufnr, first - 1, last, false), '\n')
    return { type = 'pasted', text = text:sub(1, MAX_SELECTED) }
  end
  local text = table.concat(api.nvim_buf_get_lines(bufnr, first - 1, last, false), '\n')
  return {
    type = 'selection',
    uri = vim.uri_from_bufnr(bufnr),
    range = line_range(first, last),
    text = text:sub(1, MAX_SELECTED),
  }
end

--- The entries of the quickfix list as text that is pasted into a prompt.
---@return kode.InputPart?
function M.quickfix()
  local lines = {}
  for _, entry in ipairs(vim.fn.getqflist()) do
    local name = entry.bufnr > 0 and vim.fn.fnamemodify(api.nvim_buf_get_name(entry.bufnr), ':.') or ''
    lines[#lines + 1] = ('%s:%d: %s'):format(name, entry.lnum, entry.text)
  end
  return #lines > 0 and { type = 'pasted', text = table.concat(lines, '\n'):sub(1, MAX_SELECTED) } or nil
end

return M
