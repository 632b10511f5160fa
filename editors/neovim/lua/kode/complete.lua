--- Completion in the prompt: what can stand at the cursor after `@` and `/`, as the server says.
---
--- Rule: nothing waits for the server while the user types, and an answer that is late is dropped.

local api = vim.api

local M = {}

--- Milliseconds that a completion which the user asks for by a key may take.
local LIMIT = 1000

---@type table<kode.CompletionKind, string>
local kinds = {
  file = 'f',
  folder = 'd',
  diagnostics = '!',
  diff = '±',
  session = 's',
  command = '/',
  skill = '*',
}

---@param bufnr integer
---@param encoding string
---@return kode.CompleteParams? params
---@return string? before The line before the cursor.
local function question(bufnr, encoding)
  local surface = require('kode.prompt').surface_of(bufnr)
  if not surface then
    return nil
  end
  local cursor = api.nvim_win_get_cursor(0)
  local lines = api.nvim_buf_get_lines(bufnr, 0, cursor[1], false)
  local before = (lines[#lines] or ''):sub(1, cursor[2])
  lines[#lines] = before
  local head = table.concat(lines, '\n')
  local text = table.concat(api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n')
  return { sessionId = surface.session.id, text = text, cursor = vim.str_utfindex(head, encoding) }, before
end

--- The byte of the line at which what is chosen begins, and the entries of the menu.
---@param params kode.CompleteParams
---@param before string
---@param result kode.CompleteResult
---@param encoding string
---@return integer start
---@return table[] items
local function menu(params, before, result, encoding)
  local head_bytes = vim.str_byteindex(params.text, encoding, params.cursor, false)
  local start_bytes = vim.str_byteindex(params.text, encoding, result.start, false)
  local items = vim.tbl_map(function(item)
    return {
      word = item.insertText,
      abbr = item.label,
      menu = item.detail,
      kind = kinds[item.kind] or '',
      icase = 1,
      dup = 1,
    }
  end, result.items)
  return math.max(#before - (head_bytes - start_bytes), 0), items
end

---@param bufnr integer
---@return vim.lsp.Client?
local function client_of(bufnr)
  local surface = require('kode.prompt').surface_of(bufnr)
  return surface and surface.connection:client()
end

---@type { start: integer, items: table[] }?
local answer

--- 'completefunc' and 'omnifunc' of the prompt.
---@param findstart 0|1
---@return integer|table[]
function M.func(findstart)
  if findstart == 0 then
    return answer and answer.items or {}
  end
  answer = nil
  local bufnr = api.nvim_get_current_buf()
  local client = client_of(bufnr)
  if not client then
    return -3
  end
  local params, before = question(bufnr, client.offset_encoding)
  local response = params and client:request_sync('agent/complete', params, LIMIT, bufnr)
  if not params or not response or not response.result then
    return -3
  end
  local start, items = menu(params, before --[[@as string]], response.result, client.offset_encoding)
  answer = { start = start, items = items }
  return start
end

--- Something was typed: offers what fits, when the word begins with `@` or `/`.
---@param bufnr integer
function M.typed(bufnr)
  local client = client_of(bufnr)
  if not client or api.nvim_get_current_buf() ~= bufnr then
    return
  end
  local params, before = question(bufnr, client.offset_encoding)
  if not params or not before then
    return
  end
  local is_command = before:match('^/%S*$') and api.nvim_win_get_cursor(0)[1] == 1
  if not is_command and not before:match('@%S*$') and not before:match('@"[^"]*$') then
    return
  end
  local tick = api.nvim_buf_get_changedtick(bufnr)
  client:request('agent/complete', params, function(_, result)
    local same = api.nvim_get_current_buf() == bufnr
      and api.nvim_get_mode().mode:sub(1, 1) == 'i'
      and api.nvim_buf_get_changedtick(bufnr) == tick
    if result and same and #result.items > 0 then
      local start, items = menu(params, before, result, client.offset_encoding)
      vim.fn.complete(start + 1, items)
    end
  end, bufnr)
end

return M
