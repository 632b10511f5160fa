--- Completion in the prompt: files and more after `@`, commands after `/`, as the server gives them.
---
--- Rule: typing never waits for the server, and an answer that is late is dropped.

local api = vim.api

local M = {}

--- Milliseconds that a completion on request may take.
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

--- Neovim's types know the methods of LSP alone.
M.METHOD = 'agent/complete' --[[@as any]]

--- The request to the server about a place in a prompt.
---@param bufnr integer
---@param row integer
---@param column integer In bytes.
---@param encoding kode.Encoding
---@return kode.CompleteParams? params
---@return string before The line before the place.
function M.question(bufnr, row, column, encoding)
  local lines = api.nvim_buf_get_lines(bufnr, 0, row + 1, false)
  local before = (lines[#lines] or ''):sub(1, column)
  local surface = require('kode.prompt').surface_of(bufnr)
  if not surface then
    return nil, before
  end
  lines[#lines] = before
  local head = table.concat(lines, '\n')
  local text = table.concat(api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n')
  return { sessionId = surface.session.id, text = text, cursor = vim.str_utfindex(head, encoding) }, before
end

---@param bufnr integer
---@param encoding kode.Encoding
---@return kode.CompleteParams? params
---@return string before
local function question(bufnr, encoding)
  local cursor = api.nvim_win_get_cursor(0)
  return M.question(bufnr, cursor[1] - 1, cursor[2], encoding)
end

--- The byte of the line at which a chosen entry begins.
---@param params kode.CompleteParams
---@param before string
---@param start integer As the server counts.
---@param encoding kode.Encoding
---@return integer
function M.start(params, before, start, encoding)
  local head_bytes = vim.str_byteindex(params.text, encoding, params.cursor, false)
  local start_bytes = vim.str_byteindex(params.text, encoding, start, false)
  return math.max(#before - (head_bytes - start_bytes), 0)
end

--- The byte of the line at which a chosen entry begins, and the entries of the menu.
---@param params kode.CompleteParams
---@param before string
---@param result kode.CompleteResult
---@param encoding kode.Encoding
---@return integer start
---@return table[] items
local function menu(params, before, result, encoding)
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
  return M.start(params, before, result.start, encoding), items
end

--- The server that completes the text of a buffer.
---@param bufnr integer
---@return vim.lsp.Client?
function M.client(bufnr)
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
  local client = M.client(bufnr)
  if not client then
    return -3
  end
  local params, before = question(bufnr, client.offset_encoding)
  local response = params and client:request_sync(M.METHOD, params, LIMIT)
  if not params or not response or not response.result then
    return -3
  end
  local start, items = menu(params, before, response.result, client.offset_encoding)
  answer = { start = start, items = items }
  return start
end

--- Tells completion plugins that a prompt has one source: by their defaults, paths of the disk would come before commands.
--- What the user has set for prompts stays.
function M.register()
  local blink = package.loaded['blink.cmp.config']
  if blink and blink.sources.per_filetype.kodeprompt == nil then
    blink.sources.per_filetype.kodeprompt = { 'lsp' }
  end
  local cmp_config = package.loaded['cmp.config']
  if cmp_config and cmp_config.filetypes.kodeprompt == nil then
    require('kode.foreign')('cmp').setup.filetype('kodeprompt', { sources = { { name = 'nvim_lsp' } } })
  end
end

--- Whether a plugin opens menus while the user types: it gets the same entries from `kode.prompt_server`.
---@return boolean
local function has_plugin()
  return package.loaded['blink.cmp'] ~= nil
    or package.loaded['cmp'] ~= nil
    or package.loaded['mini.completion'] ~= nil
    or package.loaded['coq'] ~= nil
end

--- Opens a menu after typing, when the word begins with `@` or `/`.
---@param bufnr integer
function M.typed(bufnr)
  local client = M.client(bufnr)
  if not client or api.nvim_get_current_buf() ~= bufnr or has_plugin() then
    return
  end
  local params, before = question(bufnr, client.offset_encoding)
  if not params then
    return
  end
  local is_command = before:match('^/%S*$') and api.nvim_win_get_cursor(0)[1] == 1
  if not is_command and not before:match('@%S*$') and not before:match('@"[^"]*$') then
    return
  end
  local tick = api.nvim_buf_get_changedtick(bufnr)
  client:request(M.METHOD, params, function(_, result)
    local same = api.nvim_get_current_buf() == bufnr
      and api.nvim_get_mode().mode:sub(1, 1) == 'i'
      and api.nvim_buf_get_changedtick(bufnr) == tick
    if result and same and #result.items > 0 then
      local start, items = menu(params, before, result, client.offset_encoding)
      vim.fn.complete(start + 1, items)
    end
  end)
end

return M
