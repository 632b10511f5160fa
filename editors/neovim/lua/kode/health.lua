--- `:checkhealth kode`
---
--- Rule: each finding says what to do about it, and the check changes nothing.

local M = {}

local health = vim.health

---@return string?
local function program()
  local lsp = require('kode.lsp')
  if not lsp.in_force() then
    health.error('lsp/kode.lua is not on the runtime path', 'see :help kode-install')
    return nil
  end
  local cmd = lsp.program()
  if not cmd then
    health.ok('the server is started by a function of your configuration')
    return nil
  end
  if vim.fn.executable(cmd) == 0 then
    health.error(('`%s` cannot be run'):format(cmd), 'install kode-ls, or set `cmd` (:help kode-settings)')
    return nil
  end
  return cmd
end

--- How long `--version` may take, in milliseconds; another host needs the time to log in.
local VERSION_LIMIT = 10000

---@param cmd string
local function check_program(cmd)
  local lsp = require('kode.lsp')
  local ask = assert(lsp.command('--version'))
  local version = vim.system(ask, { text = true, timeout = VERSION_LIMIT }):wait()
  if version.code ~= 0 then
    return health.error(('`%s` failed: %s'):format(table.concat(ask, ' '), vim.trim(version.stderr or '')))
  end
  local name = table.concat(vim.list_extend({ vim.fn.exepath(cmd) }, assert(lsp.command()), 2), ' ')
  health.ok(('%s: %s'):format(name, vim.trim(version.stdout or '')))
  health.info('to update: install the new version in the way this one was installed, then run :Kode restart')
  local doctor = vim.system(assert(lsp.command('doctor')), { text = true, timeout = 30000 }):wait()
  health.start('kode: the machine of the server')
  local said = vim.trim(doctor.stdout or '')
  for problem in said:gmatch('\n%s*! ([^\n]+)') do
    health.warn(problem)
  end
  health.info('`kode-ls doctor`:\n' .. said)
  if doctor.code ~= 0 then
    health.warn('`kode-ls doctor` failed', 'see the lines above')
  end
end

local function check_connections()
  health.start('kode: running servers')
  local wire = require('kode.wire')
  local connections = package.loaded['kode.connection'] and require('kode.connection').all() or {}
  if not next(connections) then
    return health.info('none; :Kode starts one')
  end
  for root, connection in pairs(connections) do
    local client = connection:client()
    local server = client and vim.tbl_get(client.server_capabilities, 'experimental', 'kode')
    if connection.status ~= 'ready' or not server then
      health.error(('%s: %s'):format(root, connection.reason or connection.status), ':Kode log, :Kode restart')
    elseif server.schemaHash ~= wire.schema_hash then
      health.warn(
        ('%s: server %s has another protocol schema than this client; common parts work'):format(
          root,
          server.serverVersion
        ),
        'install server and plugin of the same version'
      )
    else
      local sessions = require('kode.render').count(vim.tbl_count(connection.sessions), 'session')
      health.ok(('%s: server %s, %s'):format(root, server.serverVersion, sessions))
    end
  end
end

function M.check()
  health.start('kode: Neovim')
  if vim.fn.has('nvim-0.11') == 0 then
    return health.error('Neovim 0.11 or later is needed')
  end
  health.ok(('Neovim %s'):format(vim.fn.matchstr(vim.fn.execute('version'), 'NVIM v\\zs[^\\n]*')))
  if vim.treesitter.language.add('markdown') then
    health.ok('the transcript is highlighted by the tree-sitter parser for Markdown')
  else
    health.warn('the transcript is not highlighted: the tree-sitter parser for Markdown is missing', ':help treesitter-parsers')
  end
  if vim.o.autoread then
    health.ok("'autoread' is on: buffers follow files that commands change")
  else
    health.warn("'autoread' is off: buffers do not follow files that commands change", ':set autoread')
  end
  local problem = require('kode.config').problem(vim.g.kode or {})
  if problem then
    health.error('vim.g.kode: ' .. problem)
  end
  local cmd = program()
  if cmd then
    check_program(cmd)
  end
  check_connections()
end

return M
