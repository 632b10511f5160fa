--- The sub-commands of `:Kode` that show something: of the session, of the server, of the machine.
---
--- Rule: the server is asked at that moment, and showing changes nothing; changes are chosen from the list.

local api = vim.api
local common = require('kode.command_common')
local surface_of = require('kode.surface')
local fixed, say = common.fixed, common.say

---@param lines string[]
---@param title string
---@param filetype? string
local function show(lines, title, filetype)
  require('kode.scratch').float(lines, { title = title, filetype = filetype })
end

--- The content of the context window, in lines.
---@param use kode.ContextUse
---@return string[]
local function context_lines(use)
  local lines = {
    ('%d of %d tokens (%s), %d free, %d kept for the answer'):format(
      use.tokens,
      use.window,
      use.source,
      use.free,
      use.reserved
    ),
    '',
  }
  local names = vim.tbl_keys(use.parts)
  table.sort(names, function(a, b)
    return use.parts[a] > use.parts[b]
  end)
  for _, name in ipairs(names) do
    lines[#lines + 1] = ('%10d  %s'):format(use.parts[name], name:gsub('%u', ' %0'):lower())
  end
  return lines
end

--- The newest file that the server logs to; nil if absent.
---@return string?
local function server_log()
  local home = vim.env.KODE_LS_HOME or vim.fs.joinpath(vim.env.XDG_STATE_HOME or vim.fn.expand('~/.local/state'), 'kode-ls')
  local files = vim.fn.globpath(vim.fs.joinpath(home, 'log'), '*', false, true)
  table.sort(files)
  return files[#files]
end

---@type table<string, kode.SubCommand>
local commands = {}

commands.context = {
  text = 'show what fills the context window',
  run = function()
    surface_of.with(function(surface)
      surface:ask('agent/context/get', {}, function(use)
        show(context_lines(use), 'Context')
      end)
    end)
  end,
}

commands.todos = {
  text = 'show the todo list',
  run = function()
    surface_of.with(function(surface)
      local lines = require('kode.pending').todo_lines(surface.session)
      show(#lines > 0 and lines or { 'The todo list is empty.' }, 'To do')
    end)
  end,
}

commands.tasks = {
  text = 'show commands in the background and their output, or stop one',
  run = function()
    surface_of.with(function(surface)
      require('kode.pick_server').tasks(surface)
    end)
  end,
}

commands.team = {
  text = 'show who waits for whom among sub-agents in the background, and their tasks; send NAME TEXT: write to one',
  complete = function(words)
    if #words > 1 then
      local surface = surface_of.current()
      return #words == 2 and words[1] == 'send' and require('kode.team').names(surface and surface.session.team) or {}
    end
    return { 'send' }
  end,
  run = function(call)
    surface_of.with(function(surface)
      local team = require('kode.team')
      if call.words[1] ~= 'send' then
        return show(team.lines(surface.session.team), 'Team')
      end
      local to, text = call.text:match('^send%s+(%S+)%s+(.+)$')
      if not to or not text then
        return say('to whom, and what? (:Kode team send NAME TEXT)')
      end
      team.send(surface, to, text)
    end)
  end,
}

commands.messages = {
  text = 'show the newest notifications as a whole',
  run = function()
    local kept = require('kode.notify').kept()
    show(#kept > 0 and kept or { 'There were no notifications.' }, 'Messages')
  end,
}

commands.usage = {
  text = 'show tokens, cost, speed and limits of the provider',
  run = function()
    surface_of.with(function(surface)
      surface:ask('agent/usage/get', {}, function(usage)
        local lines = { ('known cost: $%.4f'):format(usage.knownCost) }
        for _, model in ipairs(usage.models) do
          lines[#lines + 1] = ('%s: %s, %d tokens in, %d out'):format(
            model.model,
            require('kode.render').count(model.calls, 'call'),
            model.usage.inputTokens + model.usage.cacheReadTokens + model.usage.cacheWriteTokens,
            model.usage.outputTokens
          )
        end
        vim.list_extend(lines, require('kode.limits').lines(surface.session))
        show(lines, 'Usage')
      end)
    end)
  end,
}

commands.trust = {
  text = 'approve what files of the workspace ask for',
  run = function()
    surface_of.with(function(surface)
      require('kode.pick_server').trust(surface)
    end)
  end,
}

commands.mcp = {
  text = 'show the MCP servers; reconnect, enable, disable, sign in',
  run = function()
    surface_of.with(function(surface)
      require('kode.pick_server').mcp(surface)
    end)
  end,
}

commands.doctor = {
  text = 'check the server, its models and this machine',
  run = function()
    local lsp = require('kode.lsp')
    local program = lsp.program() or 'kode-ls'
    if vim.fn.executable(program) == 0 then
      return vim.notify(('kode: `%s` cannot be run; see :help kode-install'):format(program), vim.log.levels.ERROR)
    end
    vim.system(lsp.command('doctor') or { program, 'doctor' }, { text = true, timeout = 30000 }, function(result)
      vim.schedule(function()
        show(vim.split((result.stdout or '') .. (result.stderr or ''), '\n'), 'Doctor')
      end)
    end)
  end,
}

commands.log = {
  text = "open the server's log; lsp: the log of Neovim's client",
  complete = fixed({ 'lsp' }),
  run = function(call)
    local path = call.words[1] == 'lsp' and vim.lsp.log.get_filename() or server_log()
    if not path then
      return say('the log is empty')
    end
    vim.cmd.sview({ args = { path }, magic = { file = false } })
    vim.cmd('normal! G')
  end,
}

commands.export = {
  text = 'open the conversation as a document: markdown or json',
  complete = fixed({ 'markdown', 'json' }),
  run = function(call)
    surface_of.with(function(surface)
      surface:ask('agent/session/export', { format = call.words[1] or 'markdown' }, function(result)
        local document = result.document
        local text = document.format == 'json' and vim.json.encode(document.session) or document.text
        vim.cmd.new()
        api.nvim_buf_set_lines(0, 0, -1, false, vim.split(text, '\n', { plain = true }))
        vim.bo.filetype = document.format == 'json' and 'json' or 'markdown'
        api.nvim_buf_set_name(0, vim.fs.joinpath(surface.connection.root, vim.fs.basename(result.fileName)))
      end)
    end)
  end,
}

return commands
