--- Requests of the server about buffers: edits, saves, and diagnostics of other language servers.
---
--- Rule: an edit is made exactly on the version it was computed on, or refused. It is one undo step. It loads, lists and shows
--- no buffer. A clean buffer is clean after it, and a modified one keeps its changes unsaved.

local api = vim.api
local Pause = require('kode.pause')
local config = require('kode.config')

local M = {}

--- Reasons for a save in LSP: 1 manual, 2 by a program.
local BY_USER, BY_PROGRAM = 1, 2

--- Buffers that are being written by this module.
---@type table<integer, boolean>
local writing = {}

--- The file of each buffer as it was when the buffer last had its text.
---@type table<integer, string>
local stamps = {}

---@param bufnr integer
---@return string
local function stamp(bufnr)
  local stat = vim.uv.fs_stat(api.nvim_buf_get_name(bufnr))
  return stat and ('%d.%d %d'):format(stat.mtime.sec, stat.mtime.nsec, stat.size) or 'none'
end

--- Remembers the file of a buffer whose text is that of the file.
---@param bufnr integer
function M.remember(bufnr)
  stamps[bufnr] = stamp(bufnr)
end

--- Starts to watch the file of a buffer. Of a modified buffer only Neovim knows whether its file is the one it has read.
---@param bufnr integer
function M.watch(bufnr)
  local has_changed = false
  if vim.bo[bufnr].modified then
    local question = api.nvim_create_autocmd('FileChangedShell', {
      buffer = bufnr,
      callback = function()
        has_changed = true
        vim.v.fcs_choice = ''
      end,
    })
    vim.cmd.checktime({ args = { tostring(bufnr) }, mods = { silent = true } })
    api.nvim_del_autocmd(question)
  end
  stamps[bufnr] = has_changed and 'another one' or stamp(bufnr)
end

---@param bufnr integer
function M.forget(bufnr)
  stamps[bufnr] = nil
end

---@param bufnr integer
local function is_stale_on_disk(bufnr)
  return stamps[bufnr] ~= nil and stamps[bufnr] ~= stamp(bufnr)
end

--- The loaded buffer of a document; nil if absent.
---@param uri string
---@return integer?
function M.buffer(uri)
  local ok, path = pcall(vim.uri_to_fname, uri)
  if not ok then
    return nil
  end
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].buftype == '' and vim.uri_from_bufnr(bufnr) == uri then
      return bufnr
    end
  end
  local bufnr = vim.fn.bufnr('^' .. vim.fn.fnameescape(path) .. '$')
  return bufnr > 0 and api.nvim_buf_is_loaded(bufnr) and bufnr or nil
end

--- Writes a buffer on behalf of a program. Returns why it could not be written.
---@param bufnr integer
---@return string? problem
function M.write(bufnr)
  if vim.bo[bufnr].readonly then
    return 'the buffer is read-only'
  end
  if is_stale_on_disk(bufnr) then
    return 'the file was changed on the disk meanwhile'
  end
  writing[bufnr] = true
  local ok, problem = pcall(api.nvim_buf_call, bufnr, function()
    -- Whether to overwrite was decided above; a question here would block the editor.
    vim.cmd('silent lockmarks keepalt write! ++p')
  end)
  writing[bufnr] = nil
  if not ok then
    return (tostring(problem):gsub('^.-(E%d+:)', '%1'))
  end
end

---@param bufnr integer
local function break_undo(bufnr)
  api.nvim_buf_call(bufnr, function()
    vim.cmd('let &l:undolevels = &l:undolevels')
  end)
end

--- Changes a buffer and notifies the server once: half of an edit with several places would look like the user's typing.
---@param client vim.lsp.Client
---@param bufnr integer
---@param act fun()
local function told_at_once(client, bufnr, act)
  -- Neovim's own order of changes and versions is kept; it has no public way to send what it holds back.
  local tracking = require('vim.lsp._changetracking')
  tracking.flush(client, bufnr)
  local send = client.notify --[[@as any]]
  local held ---@type table?
  ---@diagnostic disable-next-line: duplicate-set-field, assign-type-mismatch, redundant-parameter
  client.notify = function(self, method, params, ...)
    if method ~= 'textDocument/didChange' or params.textDocument.uri ~= vim.uri_from_bufnr(bufnr) then
      return send(self, method, params, ...)
    end
    if held then
      held.textDocument = params.textDocument
      vim.list_extend(held.contentChanges, params.contentChanges)
    else
      held = params
    end
    return true
  end
  local ok, problem = pcall(act)
  tracking.flush(client, bufnr)
  client.notify = nil ---@diagnostic disable-line: assign-type-mismatch
  if held then
    client:notify('textDocument/didChange', held, bufnr)
  end
  if not ok then
    error(problem, 0)
  end
end

---@param client vim.lsp.Client
---@param bufnr integer
---@param edits lsp.TextEdit[]
local function change(client, bufnr, edits)
  -- Neovim 0.11 lists every buffer that it edits.
  local listed = vim.bo[bufnr].buflisted
  break_undo(bufnr)
  told_at_once(client, bufnr, function()
    vim.lsp.util.apply_text_edits(edits, bufnr, client.offset_encoding)
  end)
  break_undo(bufnr)
  vim.bo[bufnr].buflisted = listed
end

--- The reason why an edit cannot be made in a buffer; nil when it can.
---@param bufnr integer?
---@param document lsp.OptionalVersionedTextDocumentIdentifier
---@return string?
local function refusal(bufnr, document)
  if not bufnr then
    return 'the document is not loaded in Neovim'
  end
  if not vim.bo[bufnr].modifiable then
    return "the buffer cannot be changed ('nomodifiable')"
  end
  local version = document.version
  if type(version) == 'number' and vim.lsp.util.buf_versions[bufnr] ~= version then
    return ('the text has changed: it has version %s, not %d'):format(vim.lsp.util.buf_versions[bufnr], version)
  end
end

---@param problem string
local function refuse(problem)
  return { applied = false, failureReason = problem }
end

--- The edits of a workspace edit by document; nil with a reason when it holds something else.
---@param edit lsp.WorkspaceEdit
---@return lsp.TextDocumentEdit[]?, string?
local function documents(edit)
  local list = {}
  for _, document in ipairs(edit.documentChanges or {}) do
    if document.kind then
      return nil, ('this client makes no `%s` of files: the server does that by itself'):format(document.kind)
    end
    list[#list + 1] = document
  end
  if not edit.documentChanges then
    for uri, edits in pairs(edit.changes or {}) do
      list[#list + 1] = { textDocument = { uri = uri }, edits = edits }
    end
  end
  return list
end

--- Applies an edit of the server, all of it or nothing.
---@param params lsp.ApplyWorkspaceEditParams
---@param client_id integer
---@return lsp.ApplyWorkspaceEditResult
function M.apply(params, client_id)
  local client = assert(vim.lsp.get_client_by_id(client_id), 'the client has ended')
  local list, problem = documents(params.edit)
  if not list then
    return refuse(problem --[[@as string]])
  end
  local buffers = {} ---@type integer[]
  for place, document in ipairs(list) do
    local bufnr = M.buffer(document.textDocument.uri)
    if bufnr and not vim.bo[bufnr].modified and is_stale_on_disk(bufnr) and vim.o.autoread then
      -- Reading the file again first makes the edit stale, and the server merges it.
      vim.cmd.checktime({ args = { tostring(bufnr) }, mods = { silent = true } })
    end
    problem = refusal(bufnr, document.textDocument)
    if problem then
      return refuse(problem)
    end
    buffers[place] = assert(bufnr)
  end
  for place, document in ipairs(list) do
    local bufnr = assert(buffers[place])
    local was_clean = not vim.bo[bufnr].modified
    change(client, bufnr, document.edits --[[@as lsp.TextEdit[] ]])
    if was_clean and config.get().write_clean_buffers then
      problem = M.write(bufnr)
      if problem then
        local name = vim.fn.fnamemodify(api.nvim_buf_get_name(bufnr), ':~:.')
        vim.notify(('kode: %s was edited and is not saved: %s'):format(name, problem), vim.log.levels.WARN)
      end
    end
  end
  return { applied = true }
end

--- Saves documents on request of the server, before a command runs.
---@param params kode.SaveDocumentsParams
---@return kode.SaveDocumentsResult
function M.save(params)
  local saved, failed = {}, {}
  for _, uri in ipairs(params.uris) do
    local bufnr = M.buffer(uri)
    local problem
    if not bufnr then
      problem = 'the document is not loaded in Neovim'
    elseif vim.bo[bufnr].modified then
      problem = M.write(bufnr)
    end
    if problem then
      failed[#failed + 1] = { uri = uri, reason = problem }
    else
      saved[#saved + 1] = uri
    end
  end
  return { saved = saved, failed = failed }
end

--- How long no diagnostics have to come for those of a change to be complete.
local QUIET_MS = 200

--- Waits until diagnostics of documents have come and no more come, or the limit is over.
---@param params kode.EditorDiagnosticsParams
local function settle(params)
  local pause, timer = Pause.new(), assert(vim.uv.new_timer())
  local function finish()
    pause:resume()
  end
  local wanted = {} ---@type table<integer, true>
  for _, uri in ipairs(params.uris) do
    wanted[M.buffer(uri) or 0] = true
  end
  local began, limit = vim.uv.now(), assert(params.settleMs)
  local watch = api.nvim_create_autocmd('DiagnosticChanged', {
    callback = function(event)
      if wanted[event.buf] then
        local left = math.max(0, limit - (vim.uv.now() - began))
        timer:start(math.floor(math.min(QUIET_MS, left)), 0, finish)
      end
    end,
  })
  timer:start(limit, 0, finish)
  pause:wait()
  timer:close()
  api.nvim_del_autocmd(watch)
end

--- The diagnostics of all other language servers about documents.
---@param params kode.EditorDiagnosticsParams
---@param client_id integer
---@return kode.EditorDiagnosticsResult
function M.diagnostics(params, client_id)
  if params.settleMs then
    settle(params)
  end
  local client = assert(vim.lsp.get_client_by_id(client_id), 'the client has ended')
  local own = vim.lsp.diagnostic.get_namespace(client_id)
  local buffers = {}
  if #params.uris == 0 then
    buffers = vim.tbl_filter(api.nvim_buf_is_loaded, api.nvim_list_bufs())
  else
    for _, uri in ipairs(params.uris) do
      buffers[#buffers + 1] = M.buffer(uri)
    end
  end
  local files = {}
  for _, bufnr in ipairs(buffers) do
    local found = {}
    for _, diagnostic in ipairs(vim.diagnostic.get(bufnr)) do
      if diagnostic.namespace ~= own then
        found[#found + 1] = M.to_wire(bufnr, diagnostic, client.offset_encoding)
      end
    end
    if #found > 0 or #params.uris > 0 then
      files[#files + 1] = {
        uri = vim.uri_from_bufnr(bufnr),
        version = vim.lsp.util.buf_versions[bufnr],
        diagnostics = found,
      }
    end
  end
  return { files = files }
end

---@alias kode.Encoding "utf-8"|"utf-16"|"utf-32"

--- A position in a buffer, in the encoding of the server.
---@param bufnr integer
---@param row integer
---@param column integer
---@param encoding kode.Encoding
---@return kode.Position
function M.position(bufnr, row, column, encoding)
  local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
  column = math.min(column, #line)
  return { line = row, character = vim.str_utfindex(line, encoding, column, false) }
end

---@param bufnr integer
---@param diagnostic vim.Diagnostic
---@param encoding kode.Encoding
---@return kode.EditorDiagnostic
function M.to_wire(bufnr, diagnostic, encoding)
  return {
    range = {
      start = M.position(bufnr, diagnostic.lnum, diagnostic.col, encoding),
      ['end'] = M.position(bufnr, diagnostic.end_lnum or diagnostic.lnum, diagnostic.end_col or diagnostic.col, encoding),
    },
    severity = diagnostic.severity,
    message = diagnostic.message,
    source = diagnostic.source,
    code = diagnostic.code and tostring(diagnostic.code) or nil,
  }
end

--- Reads the files of clean buffers again.
---@param uris string[]
function M.reread(uris)
  if not vim.o.autoread or vim.fn.getcmdwintype() ~= '' then
    return
  end
  for _, uri in ipairs(uris) do
    local bufnr = M.buffer(uri)
    if bufnr and not vim.bo[bufnr].modified and is_stale_on_disk(bufnr) then
      vim.cmd.checktime({ args = { tostring(bufnr) }, mods = { silent = true } })
    end
  end
end

--- The clients whose servers want to know the reason of a save.
---@type table<integer, boolean>
local told_of_saves = {}

---@param client vim.lsp.Client
---@param wanted boolean
function M.tell_saves(client, wanted)
  told_of_saves[client.id] = wanted or nil
end

---@param client vim.lsp.Client
---@return boolean
function M.tells_saves(client)
  return told_of_saves[client.id] == true
end

--- Notifies a client that a buffer will be written, with the reason.
---@param client vim.lsp.Client
---@param bufnr integer
function M.will_save(client, bufnr)
  client:notify('textDocument/willSave', {
    textDocument = { uri = vim.uri_from_bufnr(bufnr) },
    reason = writing[bufnr] and BY_PROGRAM or BY_USER,
  })
end

return M
