--- The client's side of the language server: its capabilities, and handlers for the server's messages.
---
--- Rule: every announced capability has a handler here. No message of the server moves focus, cursor or scroll.

local wire = require('kode.wire')

local M = {}

---@return table
local function capabilities()
  return {
    experimental = {
      kode = {
        protocolVersion = wire.protocol_version,
        events = true,
        permissionUi = true,
        saveDocuments = true,
        diagnostics = true,
        languageServers = true,
        diffUi = true,
        bell = true,
      },
    },
  }
end

---@type table<string, lsp.Handler>
local handlers = {
  ['agent/event'] = function(_, params, context)
    require('kode.connection').event(context.client_id, params)
  end,
  ['agent/tools/call'] = function(_, params)
    return require('kode.tools').call(params)
  end,
  ['agent/tools/cancelled'] = function(_, params)
    require('kode.tools').cancel(params)
  end,
  ['agent/client/bell'] = function()
    require('kode.alert').ring()
  end,
  ['workspace/applyEdit'] = function(_, params, context)
    return require('kode.edits').apply(params, context.client_id)
  end,
  ['agent/editor/save'] = function(_, params)
    return require('kode.edits').save(params)
  end,
  ['agent/editor/diagnostics'] = function(_, params, context)
    return require('kode.edits').diagnostics(params, context.client_id)
  end,
  ['agent/editor/lsp'] = function(_, params, context)
    -- A handler of a request returns its error second.
    ---@diagnostic disable-next-line: redundant-return-value
    return require('kode.language').request(params, context.client_id)
  end,
}

---@param client vim.lsp.Client
local function on_init(client)
  local sync = client.server_capabilities.textDocumentSync
  if type(sync) == 'table' then
    -- Neovim reports every save as manual; `kode.edits` sends the reason instead.
    require('kode.edits').tell_saves(client, sync.willSave == true)
    sync.willSave = false
  end
  -- Changes are shown in the text, so `K` stays with the other servers.
  client.server_capabilities.hoverProvider = nil
  require('kode.connection').initialized(client)
end

--- The configuration in force; nil where `lsp/kode.lua` is not on the runtime path.
---@return vim.lsp.Config?
function M.in_force()
  -- The type of `vim.lsp.config` is that of a function, for which an index is no field.
  local configs = vim.lsp.config --[[@as table<string, vim.lsp.Config?>]]
  return configs.kode
end

--- The server's program; nil when a function starts it.
---@return string?
function M.program()
  local config = M.in_force()
  local cmd = config and config.cmd
  return type(cmd) == 'table' and cmd[1] or nil
end

--- Arguments after which the server speaks LSP.
local SERVES = { 'lsp', '--stdio' }

--- The command that runs a subcommand of the server where the server runs, on another host too: `{ 'ssh', 'host', 'kode-ls' }`
--- goes before it. Nil when a function starts the server.
---@param ... string
---@return string[]?
function M.command(...)
  local config = M.in_force()
  local cmd = config and config.cmd
  if type(cmd) ~= 'table' then
    return nil
  end
  local last = vim.list_contains(SERVES, cmd[#cmd]) and #cmd - 1 or #cmd
  return vim.list_extend(vim.list_slice(cmd, 1, last), { ... })
end

--- A configuration with the settings and handlers of the plugin.
---@param config vim.lsp.Config
---@return vim.lsp.Config
function M.config(config)
  local settings = require('kode.config').get()
  return vim.tbl_deep_extend('force', config, {
    cmd = settings.cmd,
    root_markers = settings.root_markers,
    init_options = settings.init_options,
    capabilities = capabilities(),
    handlers = handlers,
    on_init = on_init,
    on_exit = function(code, signal, id)
      vim.schedule(function()
        require('kode.connection').exited(id, code, signal)
      end)
    end,
  })
end

return M
