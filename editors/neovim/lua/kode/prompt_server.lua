--- The prompt's language server: it completes names and commands for every completion plugin and for Neovim itself.
---
--- Rule: it runs inside Neovim and holds no state. Each request goes to the server as `agent/complete`, with the session of
--- the buffer, and its answer comes back in the form of LSP.

local complete = require('kode.complete')

local M = {}

local kinds = vim.lsp.protocol.CompletionItemKind

---@type table<kode.CompletionKind, integer>
local item_kinds = {
  file = kinds.File,
  folder = kinds.Folder,
  diagnostics = kinds.Event,
  diff = kinds.Reference,
  session = kinds.Reference,
  command = kinds.Function,
  skill = kinds.Module,
}

---@type lsp.InitializeResult
local capabilities = {
  capabilities = {
    positionEncoding = 'utf-8',
    completionProvider = { triggerCharacters = { '@', '/', '#' } },
  },
  serverInfo = { name = 'kode-prompt' },
}

---@param result kode.CompleteResult
---@param range lsp.Range
---@param typed string
---@return lsp.CompletionList
local function to_list(result, range, typed)
  local items = {}
  for number, item in ipairs(result.items) do
    items[number] = {
      label = item.label,
      detail = item.detail ~= '' and item.detail or nil,
      -- nvim-cmp and blink.cmp show these two, Neovim's own menu the detail.
      labelDetails = item.detail ~= '' and { description = item.detail } or nil,
      documentation = item.detail ~= '' and item.detail or nil,
      kind = item_kinds[item.kind] or kinds.Text,
      -- The server has found and ranked them already: the typed text matches, and the order stays.
      filterText = typed,
      sortText = ('%04d'):format(number),
      textEdit = { range = range, newText = item.insertText },
    }
  end
  return { isIncomplete = true, items = items }
end

---@param params lsp.CompletionParams
---@param callback fun(problem?: lsp.ResponseError, result?: any)
local function completion(params, callback)
  local bufnr = vim.uri_to_bufnr(params.textDocument.uri)
  local client = complete.client(bufnr)
  if not client then
    return callback(nil, { isIncomplete = true, items = {} })
  end
  local row, column = params.position.line, params.position.character
  local question, before = complete.question(bufnr, row, column, client.offset_encoding)
  assert(question, 'a buffer with a client has a session')
  client:request(complete.METHOD, question, function(problem, result)
    if problem or not result then
      return callback(problem, nil)
    end
    local start = complete.start(question, before, result.start, client.offset_encoding)
    local range = { start = { line = row, character = start }, ['end'] = { line = row, character = #before } }
    callback(nil, to_list(result, range, before:sub(start + 1)))
  end)
end

---@param dispatchers vim.lsp.rpc.Dispatchers
---@return vim.lsp.rpc.PublicClient
local function serve(dispatchers)
  local is_closing = false
  local last_id = 0
  ---@type table<string, fun(params: any, callback: fun(problem?: lsp.ResponseError, result?: any))>
  local methods = {
    initialize = function(_, callback)
      callback(nil, capabilities)
    end,
    shutdown = function(_, callback)
      callback(nil, vim.NIL)
    end,
    ['textDocument/completion'] = completion,
  }
  local server = {}
  function server.request(method, params, callback)
    last_id = last_id + 1
    local act = methods[method]
    if act then
      act(params, callback)
    else
      callback({ code = vim.lsp.protocol.ErrorCodes.MethodNotFound, message = method .. ' is not answered here' }, nil)
    end
    return true, last_id
  end
  function server.notify(method)
    if method == 'exit' then
      is_closing = true
      dispatchers.on_exit(0, 0)
    end
    return true
  end
  function server.is_closing()
    return is_closing
  end
  function server.terminate()
    is_closing = true
  end
  return server
end

--- Attaches the server to a prompt's buffer; there is one for all of them.
---@param bufnr integer
function M.attach(bufnr)
  vim.lsp.start({ name = 'kode-prompt', cmd = serve }, {
    bufnr = bufnr,
    reuse_client = function(client)
      return client.name == 'kode-prompt' and not client:is_stopped()
    end,
  })
end

return M
