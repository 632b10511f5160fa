--- A running server: started, attached to buffers, and restarted after a crash.
---
--- Rule: one server for a root. What a user has typed is never in a server alone, so a crash loses nothing; too many
--- crashes in a row end the restarting and name the log.

local api = vim.api
local config = require('kode.config')
local edits = require('kode.edits')
local Session = require('kode.session')

--- Milliseconds for which a crash counts.
local CRASH_WINDOW = 180000
--- Milliseconds before the first restart; each further one waits twice as long.
local RESTART_DELAY = 200
--- Events that are kept of sessions that are not loaded yet.
local MAX_STRAY = 1000

---@class kode.Connection
---@field root string
---@field client_id? integer
---@field status "starting"|"ready"|"restarting"|"stopped"
---@field reason? string Why it is not ready, for people.
---@field sessions table<kode.SessionId, kode.Session>
---@field private log_level? string How much the server logs, where that is not as usual.
---@field private crashes integer[]
---@field private waiting (fun(problem?: string))[]
---@field private failing? boolean Whether the requests that waited are failing now.
---@field private stray kode.AgentEventParams[]
---@field private beginning integer Sessions that are being begun.
---@field private adopting table<kode.SessionId, boolean>
---@field private how? { code: integer, signal: integer } How the process ended.
local Connection = {}
Connection.__index = Connection

local M = {}

---@type table<string, kode.Connection>
local connections = {}
local leaving = false

---@param message string
---@param level? integer
local function say(message, level)
  -- An ending editor ends the server, which then refuses requests: the user need not know.
  if vim.v.exiting ~= vim.NIL then
    return
  end
  require('kode.notify').show('kode: ' .. message, level or vim.log.levels.ERROR)
end

--- The root of the project that a buffer, or else the current folder, belongs to.
---@param bufnr? integer
---@return string
function M.root(bufnr)
  local name = bufnr and vim.bo[bufnr].buftype == '' and api.nvim_buf_get_name(bufnr) or ''
  local from = name ~= '' and name or assert(vim.uv.cwd())
  local root = vim.fs.root(from, config.get().root_markers) or vim.uv.cwd()
  return assert(vim.uv.fs_realpath(root --[[@as string]]) or root)
end

--- All connections.
---@return table<string, kode.Connection>
function M.all()
  return connections
end

---@param client_id integer
---@return kode.Connection?
function M.of_client(client_id)
  for _, connection in pairs(connections) do
    if connection.client_id == client_id then
      return connection
    end
  end
end

---@param root string
---@return kode.Connection
local function create(root)
  local connection = setmetatable({
    root = root,
    status = 'starting',
    sessions = {},
    crashes = {},
    waiting = {},
    stray = {},
    beginning = 0,
    adopting = {},
  }, Connection)
  connections[root] = connection
  return connection
end

--- The connection for a root; it is started if absent.
---@param root string
---@return kode.Connection
function M.get(root)
  local connection = connections[root]
  if not connection then
    connection = create(root)
    connection:start()
  elseif connection.status == 'stopped' then
    connection:restart()
  end
  return connection
end

function Connection:client()
  return self.client_id and vim.lsp.get_client_by_id(self.client_id)
end

---@private
---@param status "starting"|"ready"|"restarting"|"stopped"
---@param reason? string
function Connection:become(status, reason)
  self.status, self.reason = status, reason
  require('kode.events').emit('ConnectionChanged', { root = self.root, status = status, reason = reason })
  require('kode.status').changed()
end

---@private
---@param problem string
function Connection:fail(problem)
  self:become('stopped', problem)
  local waiting = self.waiting
  self.waiting = {}
  -- Whatever waits fails by the same problem, which is reported once; so does what asks for a server that cannot be started,
  -- right after it.
  self.failing = true
  for _, callback in ipairs(waiting) do
    callback(problem)
  end
  vim.schedule(function()
    self.failing = false
  end)
  say(problem)
end

--- A command that starts the server and remembers how it ended. Neovim gets a clean exit: its own message about a
--- crash would wait for Enter, and this client says itself what happened.
---@private
---@param cmd string[]
---@param start vim.lsp.ClientConfig
---@return fun(dispatchers: vim.lsp.rpc.Dispatchers): vim.lsp.rpc.PublicClient
function Connection:command(cmd, start)
  return function(dispatchers)
    local quiet = vim.tbl_extend('force', dispatchers, {
      on_exit = function(code, signal)
        self.how = { code = code, signal = signal }
        dispatchers.on_exit(0, 0)
      end,
    })
    ---@cast quiet vim.lsp.rpc.Dispatchers
    return vim.lsp.rpc.start(cmd, quiet, { cwd = start.cmd_cwd, env = start.cmd_env, detached = start.detached })
  end
end

function Connection:start()
  local lsp = require('kode.lsp')
  local lsp_config, program = lsp.in_force(), lsp.program()
  if not lsp_config then
    return self:fail('lsp/kode.lua is not on the runtime path; see :help kode-install')
  end
  if program and vim.fn.executable(program) == 0 then
    return self:fail(('`%s` cannot be run: install kode-ls, or set `cmd` (:help kode-install)'):format(program))
  end
  ---@type any
  local start = vim.tbl_extend('force', lsp_config, { name = 'kode', root_dir = self.root })
  if self.log_level then
    start.cmd_env = vim.tbl_extend('force', start.cmd_env or {}, { KODE_LS_LOG = self.log_level })
  end
  self.how = nil
  if type(start.cmd) == 'table' then
    start.cmd = self:command(start.cmd, start)
  end
  local ok, id = pcall(vim.lsp.start, start, {
    attach = false,
    reuse_client = function(client)
      return client.name == 'kode' and client.root_dir == self.root and not client:is_stopped()
    end,
  })
  if not ok or not id then
    return self:fail('the server could not be started: ' .. tostring(id))
  end
  self.client_id = id
  local client = vim.lsp.get_client_by_id(id)
  if client and client.initialized then
    M.initialized(client)
  end
end

---@param id kode.SessionId
---@return kode.LoadSessionParams
local function load_params(id)
  return { sessionId = id, items = config.get().transcript.items }
end

--- A server is ready, from any starter.
---@param client vim.lsp.Client
function M.initialized(client)
  local root = client.root_dir or assert(vim.uv.cwd())
  local connection = connections[root] or create(root)
  connection.client_id = client.id
  vim.schedule(function()
    connection:ready(client)
  end)
end

---@private
---@param client vim.lsp.Client
function Connection:ready(client)
  local server = vim.tbl_get(client.server_capabilities or {}, 'experimental', 'kode')
  local wire = require('kode.wire')
  if not server or server.protocolVersion ~= wire.protocol_version then
    return self:fail(
      ('the server speaks protocol %s and this client %d: install versions that fit (:checkhealth kode)'):format(
        server and server.protocolVersion or 'none',
        wire.protocol_version
      )
    )
  end
  M.attach_all()
  -- Acts of the user before the sessions are there again wait until they are.
  local left = vim.tbl_count(self.sessions)
  local function loaded()
    left = left - 1
    if left > 0 then
      return
    end
    self:become('ready')
    require('kode.models').refresh(self)
    require('kode.alert').report(self)
    require('kode.tools').announce(self)
    local waiting = self.waiting
    self.waiting = {}
    for _, callback in ipairs(waiting) do
      callback()
    end
  end
  if left == 0 then
    return loaded()
  end
  for id in pairs(self.sessions) do
    self:dispatch('agent/session/load', load_params(id), function(err, snapshot)
      if err then
        M.complain(err)
      else
        self:take(snapshot)
      end
      loaded()
    end)
  end
end

--- Calls a function once the server is ready, or with what went wrong.
---@param callback fun(problem?: string)
function Connection:when_ready(callback)
  if self.status == 'ready' then
    callback()
  elseif self.status == 'stopped' then
    callback(self.reason or 'the server is not running')
  else
    self.waiting[#self.waiting + 1] = callback
  end
end

--- Ends the server, and starts it again unless that is not wanted.
---@param only_stop? boolean
function Connection:restart(only_stop)
  self.crashes = {}
  local client = self:client()
  self.client_id = nil
  if client and not client:is_stopped() then
    client:stop()
  end
  if only_stop then
    return self:become('stopped', 'stopped (:Kode restart)')
  end
  self:become('restarting', 'restarting')
  vim.schedule(function()
    self:start()
  end)
end

--- Starts the server again, so that it logs all it does, or as much as usual.
---@param all boolean
function Connection:trace(all)
  self.log_level = all and 'trace' or nil
  self:restart()
end

--- A server has ended.
---@param client_id integer
---@param code integer
---@param signal integer
function M.exited(client_id, code, signal)
  local connection = M.of_client(client_id)
  if not connection or leaving then
    return
  end
  connection.client_id = nil
  local how = connection.how
  if how then
    code, signal = how.code, how.signal
  end
  if code == 0 and signal == 0 then
    return connection:become('stopped', 'stopped (:Kode restart)')
  end
  connection:crashed(signal ~= 0 and ('signal %d'):format(signal) or ('exit code %d'):format(code))
end

---@private
---@param how string
function Connection:crashed(how)
  local now = vim.uv.now()
  self.crashes = vim.tbl_filter(function(time)
    return now - time < CRASH_WINDOW
  end, self.crashes)
  self.crashes[#self.crashes + 1] = now
  local limit = config.get().restarts
  if #self.crashes >= limit then
    return self:fail(('crashed %d times: :Kode log, :Kode restart'):format(#self.crashes))
  end
  self:become('restarting', ('restarting after a crash (%s)'):format(how))
  vim.defer_fn(function()
    if self.status == 'restarting' then
      self:start()
    end
  end, math.floor(RESTART_DELAY * 2 ^ (#self.crashes - 1)))
end

---@private
---@param method any A method of the protocol: Neovim's types know those of LSP alone.
---@param params table
---@param callback fun(problem?: lsp.ResponseError, result?: any)
function Connection:dispatch(method, params, callback)
  local client = self:client()
  if not client then
    return callback({ code = 0, message = self.reason or 'the server is not running' })
  end
  local sent = client:request(method, next(params) and params or vim.empty_dict(), function(err, result)
    callback(err, result)
  end)
  if not sent then
    callback({ code = 0, message = 'the server has just ended' })
  end
end

--- Sends a request as soon as the server is ready. The callback gets what went wrong, or the result.
---@param method string
---@param params table
---@param callback fun(problem?: lsp.ResponseError, result?: any)
function Connection:request(method, params, callback)
  self:when_ready(function(problem)
    if problem then
      return callback({ code = 0, message = problem })
    end
    self:dispatch(method, params, callback)
  end)
end

--- Sends a request that can be cancelled. The callback gets what went wrong, or the result.
---@param method any A method of the protocol.
---@param params table
---@param callback fun(problem?: lsp.ResponseError, result?: any)
---@return fun() cancel Cancels it, if it still waits.
function Connection:cancellable(method, params, callback)
  local cancelled, client, id = false, nil, nil
  self:when_ready(function(problem)
    if cancelled then
      return
    end
    client = self:client()
    if problem or not client then
      return callback({ code = 0, message = problem or self.reason or 'the server is not running' })
    end
    local sent
    sent, id = client:request(method, params, callback)
    if not sent then
      callback({ code = 0, message = 'the server has just ended' })
    end
  end)
  return function()
    cancelled = true
    if client and id then
      client:cancel_request(id)
    end
  end
end

--- Hints by the kind of an error, in commands of this client.
---@type table<string, string>
local hints = {
  sessionBusy = ':Kode takeover if it is open elsewhere',
  takeOverDeclined = 'wait for it, or :Kode takeover force',
  writerSilent = ':Kode takeover force',
  unknownPermission = 'this prompt is closed',
  unknownQuestion = 'this question is closed',
  alreadyResolved = 'it was answered elsewhere',
  modelNotConfigured = ':Kode setup',
  chatDisabled = 'the turn limit is 0; see :Kode doctor',
  storageFailure = ':Kode log',
  corrupted = ':Kode log',
  internal = ':Kode log',
  untrustedWorkspace = ':Kode trust',
}

--- The next step for an error: in this client's commands where it knows them, else as the server says unless that names
--- methods of the protocol.
---@param err lsp.ResponseError
---@return string?
local function hint_of(err)
  local data = type(err.data) == 'table' and err.data or {}
  local hint = data.kind and hints[data.kind] or data.hint
  if data.kind == 'invalidParams' or (hint and (hint:find('agent/', 1, true) or hint:find('`kode%.'))) then
    return nil
  end
  return hint
end

--- What failed, why, and what to do.
---@param err lsp.ResponseError
---@return string
function M.text_of(err)
  local hint = hint_of(err)
  return hint and ('%s (%s)'):format(err.message:gsub('%.$', ''), hint) or err.message
end

--- Notifies the user of a failed request: what failed, why, and what to do.
---@param err lsp.ResponseError
function M.complain(err)
  say(M.text_of(err))
end

--- Sends a request and passes its result on; the user is notified when it fails.
---@param method string
---@param params table
---@param callback fun(result: any)
function Connection:ask(method, params, callback)
  self:request(method, params, function(err, result)
    if err then
      return self:complain_unless_failing(err)
    end
    callback(result)
  end)
end

---@private
---@param err lsp.ResponseError
function Connection:complain_unless_failing(err)
  if not self.failing then
    M.complain(err)
  end
end

---@private
---@param snapshot kode.Snapshot
---@return kode.Session
function Connection:take(snapshot)
  local session = self.sessions[snapshot.sessionId]
  if session then
    session:reset(snapshot)
  else
    session = Session.new(snapshot, config.get().transcript.max_items)
    self.sessions[snapshot.sessionId] = session
    require('kode.surface').watch(self, session)
  end
  self.stray = vim.tbl_filter(function(params)
    if params.sessionId == session.id then
      session:apply(params)
      return false
    end
    return true
  end, self.stray)
  return session
end

--- Begins a session.
---@param callback fun(session: kode.Session)
---@param failed? fun() Called without one, which is reported to the user.
---@param how? kode.NewSessionParams
function Connection:new_session(callback, failed, how)
  self.beginning = self.beginning + 1
  self:request('agent/session/new', how or {}, function(err, result)
    self.beginning = self.beginning - 1
    if err then
      if failed then
        failed()
      end
      return self:complain_unless_failing(err)
    end
    callback(self:take(result.snapshot))
  end)
end

--- Loads a session, or loads it again.
---@param id kode.SessionId
---@param callback? fun(session: kode.Session)
function Connection:load(id, callback)
  self:ask('agent/session/load', load_params(id), function(snapshot)
    local session = self:take(snapshot)
    if callback then
      callback(session)
    end
  end)
end

--- Shows a session that another caller has started in this server, such as a code action.
---@private
---@param id kode.SessionId
function Connection:adopt(id)
  -- One that is being begun here is reported by the answer that is on its way.
  if self.beginning == 0 and not self.adopting[id] and self.status == 'ready' then
    self.adopting[id] = true
    self:request('agent/session/load', load_params(id), function(err, snapshot)
      self.adopting[id] = nil
      if err then
        return M.complain(err)
      end
      local session = self:take(snapshot)
      local surface = require('kode.surface')
      surface.use(surface.all()[session.id])
    end)
  end
end

--- An event has come.
---@param client_id integer
---@param params kode.AgentEventParams
function M.event(client_id, params)
  local connection = M.of_client(client_id)
  if not connection then
    return
  end
  local session = connection.sessions[params.sessionId]
  if not session then
    if #connection.stray < MAX_STRAY then
      table.insert(connection.stray, params)
    end
    return connection:adopt(params.sessionId)
  end
  if session:apply(params) then
    require('kode.events').emit_event(params)
    if params.event.type == 'gap' then
      connection:load(params.sessionId)
    elseif params.event.type == 'config_changed' then
      require('kode.models').refresh(connection)
    end
  end
end

---@param bufnr integer
local function is_file(bufnr)
  local name = api.nvim_buf_get_name(bufnr)
  return api.nvim_buf_is_loaded(bufnr)
    and vim.bo[bufnr].buftype == ''
    and name ~= ''
    and not name:find('^%a[%w+.-]+://')
end

---@param path string
---@param root string
local function is_inside(path, root)
  return vim.startswith(path, root:sub(-1) == '/' and root or root .. '/')
end

--- Attaches a buffer to the servers that should know its text: that of its project, or all when it has none.
---@param bufnr integer
local function attach(bufnr)
  if not is_file(bufnr) then
    return
  end
  local path = api.nvim_buf_get_name(bufnr)
  local inside = vim.tbl_filter(function(connection)
    return is_inside(vim.uv.fs_realpath(path) or path, connection.root)
  end, vim.tbl_values(connections))
  for _, connection in ipairs(#inside > 0 and inside or vim.tbl_values(connections)) do
    local client = connection:client()
    if client and client.initialized and not client:is_stopped() and not client.attached_buffers[bufnr] then
      edits.watch(bufnr)
      vim.lsp.buf_attach_client(bufnr, client.id)
    end
  end
end

function M.attach_all()
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    attach(bufnr)
  end
end

local group = api.nvim_create_augroup('kode.connection', {})
api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile', 'BufFilePost', 'BufWritePost' }, {
  group = group,
  desc = 'kode: know the text of files that are open',
  callback = function(event)
    if next(connections) then
      if not vim.bo[event.buf].modified then
        edits.remember(event.buf)
      end
      -- The type of the file is found after it was read.
      vim.schedule(function()
        if api.nvim_buf_is_valid(event.buf) then
          attach(event.buf)
        end
      end)
    end
  end,
})
api.nvim_create_autocmd('BufWritePre', {
  group = group,
  desc = 'kode: say who saves',
  callback = function(event)
    for _, connection in pairs(connections) do
      local client = connection:client()
      if client and client.attached_buffers[event.buf] and edits.tells_saves(client) then
        edits.will_save(client, event.buf)
      end
    end
  end,
})
api.nvim_create_autocmd('BufUnload', {
  group = group,
  desc = 'kode: forget the file of a buffer that is gone',
  callback = function(event)
    edits.forget(event.buf)
  end,
})
api.nvim_create_autocmd('VimLeavePre', {
  group = group,
  desc = 'kode: keep the drafts; a server that ends now has not crashed',
  callback = function()
    leaving = true
    if package.loaded['kode.comments'] then
      require('kode.comments').keep()
    end
    require('kode.prompt').flush_all()
  end,
})

return M
