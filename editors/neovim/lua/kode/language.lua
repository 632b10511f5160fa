--- Requests of the server for the other language servers of Neovim.
---
--- Rule: nothing is changed for a request: the server computes with what the others know and applies its own edits. A file that no
--- buffer has is loaded without events, in a buffer that is not listed, and for the time of the request alone.

local Pause = require('kode.pause')
local edits = require('kode.edits')

local api = vim.api

local M = {}

local CONTENT_MODIFIED = -32801
local SERVER_CANCELLED = -32802
local REQUEST_FAILED = -32803

--- The methods that change nothing.
local METHODS = {
  ['callHierarchy/incomingCalls'] = true,
  ['callHierarchy/outgoingCalls'] = true,
  ['codeAction/resolve'] = true,
  ['textDocument/codeAction'] = true,
  ['textDocument/declaration'] = true,
  ['textDocument/definition'] = true,
  ['textDocument/documentSymbol'] = true,
  ['textDocument/formatting'] = true,
  ['textDocument/hover'] = true,
  ['textDocument/implementation'] = true,
  ['textDocument/prepareCallHierarchy'] = true,
  ['textDocument/rangeFormatting'] = true,
  ['textDocument/references'] = true,
  ['textDocument/rename'] = true,
  ['textDocument/typeDefinition'] = true,
  ['workspace/symbol'] = true,
}

--- The name of a server in answers.
---@param client vim.lsp.Client
---@return string
local function label(client)
  local alike = vim.lsp.get_clients({ name = client.name })
  return #alike > 1 and ('%s#%d'):format(client.name, client.id) or client.name
end

--- Whether a server is for files like this one.
---@param client vim.lsp.Client
---@param path string
---@param filetype string?
---@return boolean
local function serves(client, path, filetype)
  local root = client.root_dir
  local config = client.config --[[@as vim.lsp.Config]]
  return vim.list_contains(config.filetypes or {}, filetype)
    and (not root or vim.fs.relpath(root, path) ~= nil)
end

--- Loads a file for the servers that are for it; nil if absent.
---@param uri string
---@param own integer
---@return integer?
local function load(uri, own)
  local path = vim.uri_to_fname(uri)
  local filetype = vim.filetype.match({ filename = path })
  local clients = vim.tbl_filter(function(client)
    return client.id ~= own and serves(client, path, filetype)
  end, vim.lsp.get_clients())
  if #clients == 0 or not vim.uv.fs_stat(path) then
    return nil
  end
  local bufnr = vim.fn.bufadd(path)
  local ignored = vim.o.eventignore
  vim.o.eventignore = 'all'
  local ok = pcall(vim.api.nvim_command, ('noswapfile silent call bufload(%d)'):format(bufnr))
  if ok then
    vim.bo[bufnr].filetype = filetype --[[@as string]]
  end
  vim.o.eventignore = ignored
  for _, client in ipairs(ok and clients or {}) do
    vim.lsp.buf_attach_client(bufnr, client.id)
  end
  return bufnr
end

--- Removes a buffer that was loaded for a request, unless it is in use by now.
---@param bufnr integer
local function unload(bufnr)
  local is_used = vim.bo[bufnr].modified or vim.bo[bufnr].buflisted or #vim.fn.win_findbuf(bufnr) > 0
  if not is_used then
    for _, client in ipairs(vim.lsp.get_clients({ bufnr = bufnr })) do
      vim.lsp.buf_detach_client(bufnr, client.id)
    end
    pcall(api.nvim_buf_delete, bufnr, { force = true })
  end
end

--- The servers that a request goes to.
---@param request kode.EditorLspParams
---@param bufnr integer?
---@param own integer
---@return vim.lsp.Client[]
local function chosen(request, bufnr, own)
  local clients = vim.lsp.get_clients({ bufnr = bufnr })
  return vim.tbl_filter(function(client)
    local is_meant = request.server == nil or label(client) == request.server
    local method = request.method --[[@as vim.lsp.protocol.Method.ClientToServer]]
    return client.id ~= own and is_meant and client:supports_method(method, bufnr)
  end, clients)
end

--- A position in the unit of a server.
---@param bufnr integer
---@param position lsp.Position
---@param encoding kode.Encoding
local function converted(bufnr, position, encoding)
  local line = api.nvim_buf_get_lines(bufnr, position.line, position.line + 1, false)[1] or ''
  local column = vim.str_byteindex(line, 'utf-16', position.character, false)
  return edits.position(bufnr, position.line, column, encoding)
end

--- The diagnostics of lines as their servers have sent them.
---@param bufnr integer
---@param range lsp.Range
local function diagnostics(bufnr, range)
  local found = {}
  for _, diagnostic in ipairs(vim.diagnostic.get(bufnr)) do
    local sent = vim.tbl_get(diagnostic, 'user_data', 'lsp')
    local last = diagnostic.end_lnum or diagnostic.lnum
    if sent and diagnostic.lnum <= range['end'].line and last >= range.start.line then
      found[#found + 1] = sent
    end
  end
  return found
end

--- The parameters for one server.
---@param request kode.EditorLspParams
---@param bufnr integer?
---@param client vim.lsp.Client
local function parameters(request, bufnr, client)
  local params = vim.deepcopy(request.params)
  if not bufnr or not params.textDocument then
    return params
  end
  params.textDocument = { uri = vim.uri_from_bufnr(bufnr) }
  local encoding = client.offset_encoding
  if params.position then
    params.position = converted(bufnr, params.position, encoding)
  end
  if params.context and params.range then
    params.context.diagnostics = diagnostics(bufnr, params.range)
  end
  if params.range then
    params.range = {
      start = converted(bufnr, params.range.start, encoding),
      ['end'] = converted(bufnr, params.range['end'], encoding),
    }
  end
  return params
end

--- Asks the servers and waits for all of them, within the limit.
---@param request kode.EditorLspParams
---@param bufnr integer?
---@param clients vim.lsp.Client[]
---@return kode.EditorLspAnswer[] answers, string? problem, boolean is_late
local function ask(request, bufnr, clients)
  local pause = Pause.new()
  local answers, problem, left = {}, nil, #clients
  local method = request.method --[[@as vim.lsp.protocol.Method.ClientToServer.Request]]
  for _, client in ipairs(clients) do
    local sent = client:request(method, parameters(request, bufnr, client), function(err, result)
      left = left - 1
      if err then
        problem = err.message
      else
        answers[#answers + 1] = {
          server = label(client),
          positionEncoding = client.offset_encoding,
          result = result == nil and vim.NIL or result,
        }
      end
      if left == 0 then
        pause:resume()
      end
    end, bufnr)
    left = sent and left or left - 1
  end
  if left > 0 then
    local timer = vim.defer_fn(function()
      pause:resume()
    end, request.limitMs)
    pause:wait()
    if not timer:is_closing() then
      timer:close()
    end
  end
  pause:close()
  return answers, problem, left > 0
end

--- Answers a request with the results of the other servers.
---@param request kode.EditorLspParams
---@param own integer The client of our own server.
---@return kode.EditorLspResult? result, lsp.ResponseError? err
function M.request(request, own)
  if not METHODS[request.method] then
    return nil, vim.lsp.rpc_response_error(REQUEST_FAILED, ('`%s` is not passed on'):format(request.method))
  end
  local document = request.params.textDocument
  local bufnr = document and edits.buffer(document.uri)
  local loaded = document and not bufnr and load(document.uri, own) or nil
  bufnr = bufnr or loaded
  if document and not bufnr then
    return { answers = {} }
  end
  local function has_moved()
    return document and document.version and vim.lsp.util.buf_versions[bufnr] ~= document.version
  end
  local answers, problem, is_late = {}, nil, false
  local moved = has_moved()
  if not moved then
    answers, problem, is_late = ask(request, bufnr, chosen(request, bufnr, own))
    moved = has_moved()
  end
  if loaded then
    unload(loaded)
  end
  if moved then
    return nil, vim.lsp.rpc_response_error(CONTENT_MODIFIED, 'the buffer has changed')
  elseif #answers == 0 and is_late then
    return nil, vim.lsp.rpc_response_error(SERVER_CANCELLED, ('no server answered within %d ms'):format(request.limitMs))
  elseif #answers == 0 and problem then
    return nil, vim.lsp.rpc_response_error(REQUEST_FAILED, problem)
  end
  return { answers = answers }
end

return M
