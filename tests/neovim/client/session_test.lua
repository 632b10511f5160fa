--- Sessions, crashes, and what the client says of itself.
---
--- Rule: a server is killed by its process id, and only one that the test has started.

local World = require('client.world')
local equal, call, say = World.equal, World.call, World.say

local tests = {}

--- A model that answers a prompt by its first word.
local function serve_answers(world)
  world:serve({
    { when = '^first', steps = { say('An answer to first.') } },
    { when = '^second', steps = { say('An answer to second.') } },
  })
end

local function server_pid(world)
  return world:lua([[
    local client = vim.lsp.get_clients({ name = 'kode' })[1]
    local pid
    for _, child in ipairs(vim.api.nvim_get_proc_children(vim.fn.getpid())) do
      local process = vim.api.nvim_get_proc(child)
      if process and process.name:match('^kode') then pid = child end
    end
    return client and client.initialized and pid or nil
  ]])
end

local function status(world)
  return world:lua([[
    local surface = require('kode.surface').latest()
    return surface and surface.connection.status
  ]])
end

tests['a server that is traced logs all it does, until that is ended'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  serve_answers(world)
  world:start({ 'a.txt' })
  world:open()
  local function another_server_after(command)
    local pid = server_pid(world)
    world:command(command)
    World.wait_until('another server is ready', function()
      local now = server_pid(world)
      return now and now ~= vim.NIL and now ~= pid and status(world) == 'ready'
    end)
  end
  another_server_after('Kode trace')
  world:send('first')
  world:wait_transcript('An answer to first.')
  world:command('Kode log')
  assert(world:text():find('TRACE', 1, true), world:text())
  world:command('close')
  another_server_after('Kode trace off')
  -- The log still has what the server before it wrote.
  local environment = assert(io.open(('/proc/%d/environ'):format(server_pid(world)), 'rb'))
  local variables = environment:read('*a')
  environment:close()
  assert(not variables:find('KODE_LS_LOG', 1, true), 'the log says as much as before')
end

tests['a killed server is started again, and everything is there'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  serve_answers(world)
  world:start({ 'a.txt' })
  world:open()
  world:send('first')
  world:wait_transcript('An answer to first.')
  world:wait_turns(1)
  world:type('iunsent<Esc>')
  local id = world:lua("return require('kode').session().id")
  local before = world:transcript()
  local pid = server_pid(world)
  vim.uv.kill(pid, 'sigkill')
  World.wait_until('another server is ready', function()
    local now = server_pid(world)
    return now and now ~= vim.NIL and now ~= pid and status(world) == 'ready'
  end)
  World.wait_until('the session is loaded', function()
    return world:lua([[
      local connection = require('kode.surface').latest().connection
      return connection:client().attached_buffers[vim.fn.bufnr('a.txt')] ~= nil
    ]])
  end)
  equal(world:text(), 'unsent\n', 'the draft')
  equal(world:lua("return require('kode').session().id"), id, 'the session')
  world:type('cc')
  world:type('second<Esc><CR>')
  world:wait_transcript('An answer to second.')
  assert(vim.startswith(world:transcript(), before:sub(1, -2)), 'the transcript goes on: ' .. world:transcript())
end

tests['a draft that a server died of hearing is still there, and is told to the next one'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  serve_answers(world)
  world:start({ 'a.txt' })
  world:open()
  world:type('ikept words<Esc>')
  world:wait_text('kept words\n')
  local pid = server_pid(world)
  vim.uv.kill(pid, 'sigstop')
  world:lua("require('kode.prompt').flush_all()")
  vim.uv.kill(pid, 'sigkill')
  World.wait_until('another server is ready', function()
    local now = server_pid(world)
    return now and now ~= vim.NIL and now ~= pid and status(world) == 'ready'
  end)
  world:wait_lua('the server has the draft', [[
    local session, kept = require('kode').session(), nil
    require('kode').request('agent/session/load', { sessionId = session.id }, function(_, snapshot)
      kept = snapshot and snapshot.draft and snapshot.draft.text or ''
    end)
    vim.wait(1000, function() return kept ~= nil end)
    return kept
  ]], 'kept words')
  equal(world:text(), 'kept words\n', 'the prompt')
end

tests['a turn that a crash has cut off is told of, and what waited waits again'] = function(world)
  World.write(world:path('a.txt'), 'one\ntwo\n')
  world:serve({
    call('Read', { file_path = '{{cwd}}/a.txt' }),
    call('Edit', { file_path = '{{cwd}}/a.txt', old_string = 'two', new_string = 'TWO' }),
    say('Done after all.'),
  })
  world:start({ 'a.txt' })
  world:open()
  world:send('go')
  world:wait_transcript('1  Deny')
  local pid = server_pid(world)
  vim.uv.kill(pid, 'sigkill')
  World.wait_until('another server is ready', function()
    local now = server_pid(world)
    return now and now ~= vim.NIL and now ~= pid and status(world) == 'ready'
  end)
  World.wait_until('it asks again', function()
    return world:lua("return #require('kode').session().permissions") == 1
  end)
  world:wait_transcript('1  Deny')
  world:type('<C-w>k]p2')
  world:wait_transcript('Done after all.')
  world:wait_text('one\nTWO\n', 'a.txt')
end

tests['five crashes stop, and say what to do'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Never asked.') })
  world:start({ 'a.txt' })
  world:open()
  world:lua('vim.defer_fn_original = vim.defer_fn; vim.defer_fn = function(f, _) return vim.defer_fn_original(f, 1) end')
  local last
  for number = 1, 5 do
    local pid
    World.wait_until(('server %d is ready'):format(number), function()
      pid = server_pid(world)
      return pid and pid ~= vim.NIL and pid ~= last and status(world) == 'ready'
    end)
    last = pid
    vim.uv.kill(pid, 'sigkill')
  end
  World.wait_until('it is stopped', function()
    return status(world) == 'stopped'
  end)
  world:wait_screen('crashed 5 times')
  world:shot('crashed')
  -- The prompt stays usable, and the user can try again.
  world:type('istill here<Esc>')
  World.wait_until('it is typed', function()
    return world:text() == 'still here\n'
  end)
  world:command('Kode restart')
  World.wait_until('it runs', function()
    return status(world) == 'ready'
  end)
  equal(world:text(), 'still here\n', 'the prompt')
end

tests['sessions are renamed, listed, forked and exported'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  serve_answers(world)
  world:start({ 'a.txt' })
  world:open()
  world:send('first')
  world:wait_transcript('An answer to first.')
  world:wait_turns(1)
  local id = world:lua("return require('kode').session().id")
  world:command('Kode rename My own title')
  world:wait_transcript('# My own title')
  world:command('Kode new second')
  World.wait_until('another session is there', function()
    return world:lua("return require('kode').session().id") ~= id
  end)
  world:wait_transcript('An answer to second.')
  world:use_picker()
  world:command('Kode sessions')
  World.wait_until('they are listed', function()
    return world:lua('return #asked') == 1
  end)
  equal(world:lua('return #asked[1].items'), 2, 'the sessions')
  world:lua([[
    local question = table.remove(asked, 1)
    for _, item in ipairs(question.items) do
      if item.title == 'My own title' then question.choose(item) end
    end
  ]])
  world:answer('Open')
  world:wait_transcript('An answer to first.')
  world:command('Kode export')
  World.wait_until('the document is there', function()
    return world:text():find('An answer to first.', 1, true) and world:lua('return vim.bo.filetype') == 'markdown'
  end)
  world:command('quit!')
  world:command('Kode fork')
  World.wait_until('a fork is there', function()
    local now = world:lua("return require('kode').session().id")
    return now ~= id and world:transcript():find('An answer to first.', 1, true) ~= nil
  end)
end

tests['a second Neovim follows the session, and takes it over'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  serve_answers(world)
  world:start({ 'a.txt' })
  world:open()
  world:send('first')
  world:wait_transcript('An answer to first.')
  world:wait_turns(1)
  local other = setmetatable({ folder = world.folder, jobs = {}, env = world.env }, World)
  other:start({ 'a.txt' })
  vim.list_extend(world.jobs, other.jobs)
  other:command('Kode resume')
  other:wait_screen('open in another window')
  other:wait_transcript('An answer to first.')
  -- An unsendable prompt stays in the prompt.
  other:type('inot mine<Esc><CR>')
  World.wait_until('the user is told', function()
    return #other:lua('return notified') > 0
  end)
  local told = other:lua('return notified[1]')
  assert(told:find(':Kode takeover', 1, true), 'it says what to do: ' .. told)
  assert(not told:find('agent/', 1, true) and not told:find('kode.takeOver', 1, true), 'by commands of this client: ' .. told)
  World.wait_until('the words are there again', function()
    return other:text() == 'not mine\n'
  end)
  -- It sees what happens there.
  world:send('second')
  other:wait_transcript('An answer to second.')
  world:wait_turns(2)
  other:command('Kode takeover')
  World.wait_until('it is taken over', function()
    return other:lua("return require('kode').session().following") == vim.NIL
  end)
  other:type('ccfirst<Esc><CR>')
  other:wait_turns(2)
  world:wait_screen('open in another window')
end

tests['the demo shows all of it'] = function(world)
  local command = { vim.v.progpath, '--headless', '--embed', '-n', '-i', 'NONE', '-u', World.plugin .. '/demo.lua' }
  world.nvim = vim.fn.jobstart(command, {
    rpc = true,
    cwd = world.folder,
    env = { KODE_LS_BIN = World.program, HOME = world.folder, XDG_STATE_HOME = world.folder .. '/state' },
  })
  world.jobs[1] = world.nvim
  world:lua('vim.o.columns, vim.o.lines = 120, 40')
  World.wait_until('the prompt is written', function()
    return world:text():find('Fix the greeting', 1, true) ~= nil
  end)
  local filetype = "return vim.filetype.match({ buf = vim.fn.bufnr('greeting.py') }) == vim.bo[vim.fn.bufnr('greeting.py')].filetype"
  world:wait_lua('the file has colors', filetype, true)
  world:type('<C-s>')
  world:wait_transcript('1  Deny')
  world:shot('demo-asks')
  world:type('<Esc><C-w>k]p')
  World.wait_until('it takes keys', function()
    return world:lua("return require('kode.surface').latest().transcript:is_settled()")
  end)
  world:type('2')
  world:wait_transcript('Done: `greet`')
  world:wait_text('def greet(name):\n    return "Hello, " + name\n\n\nif __name__ == "__main__":\n    print(greet("world"))\n', 'greeting.py')
  world:wait_screen('┃')
  world:shot('demo-done')
end

tests['every layout opens and closes as it was before'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('An answer.') })
  world:start({ 'a.txt' })
  for _, layout in ipairs({ 'split', 'float', 'tab', 'current' }) do
    world:command('Kode open ' .. layout)
    World.wait_until(layout .. ' is open', function()
      return world:lua('return vim.bo.filetype') == 'kodeprompt'
    end)
    world:shot('layout-' .. layout)
    world:command('Kode toggle')
    World.wait_until(layout .. ' is closed', function()
      return #world:lua('return vim.api.nvim_list_wins()') == 1
    end)
    equal(world:lua('return vim.fs.basename(vim.api.nvim_buf_get_name(0))'), 'a.txt', 'the buffer after ' .. layout)
  end
end

tests['mode, model, effort and context are set and shown'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('An answer.') })
  world:start({ 'a.txt' })
  world:open()
  world:command('Kode mode acceptEdits')
  world:wait_screen('acceptEdits')
  world:command('Kode effort high')
  world:wait_screen('high')
  world:use_picker()
  world:command('Kode model')
  World.wait_until('models are offered', function()
    return world:lua('return #asked') == 1
  end)
  world:send('go')
  world:wait_turns(1)
  -- The same line can be had in windows of the user.
  local line = world:lua("return require('kode').winbar()")
  assert(line:find('acceptEdits', 1, true) and line:find('claude%-[%w-]+ high'), line)
  world:command('wincmd t | setlocal winbar=%{%v:lua.require\'kode\'.winbar()%} | wincmd p')
  World.wait_until('it is on the screen twice', function()
    return select(2, world:screen():gsub('acceptEdits', '')) == 2
  end)
  world:command('Kode context')
  world:wait_screen('tokens')
  world:type('q')
  world:command('Kode todos')
  world:wait_screen('The todo list is empty.')
end

tests['every event is told to autocommands with its payload'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('An answer.') })
  world:start({ 'a.txt' })
  world:lua([[
    started = {}
    vim.api.nvim_create_autocmd('User', {
      pattern = 'KodeTurnStarted',
      callback = function(event) table.insert(started, event.data) end,
    })
  ]])
  world:command('Kode send go')
  world:wait_turns(1)
  local data = world:lua('return started[1]')
  equal(data.event.type, 'turn_started', 'the type')
  assert(data.session_id and data.bookmark.seq and data.channel, vim.inspect(data))
end

--- The report of `:checkhealth kode`, once it is whole.
local function health_report(world)
  world:command('checkhealth kode')
  World.wait_until('the report is there', function()
    return world:text():find('running servers', 1, true) ~= nil
  end)
  return world:text()
end

--- The same, without an error or a warning, of a window with a session.
local function healthy_report(world, settings)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('An answer.') })
  world:start({ 'a.txt' }, settings)
  world:open()
  local report = health_report(world)
  assert(not report:find('ERROR', 1, true) and not report:find('WARNING', 1, true), report)
  return report
end

tests['checkhealth finds nothing wrong'] = function(world)
  local report = healthy_report(world)
  assert(report:find('1 session\n', 1, true), report)
  local version = World.read(World.root .. '/Cargo.toml'):match('%[workspace.package%]\nversion = "(.-)"')
  assert(report:find(('%s: kode-ls %s\n'):format(World.program, version), 1, true), 'the program and its version: ' .. report)
  assert(report:find('to update: install the new version', 1, true) and report:find(':Kode restart', 1, true), report)
  assert(report:find('Neovim ' .. tostring(vim.version()) .. '\n', 1, true), report)
end

tests['checkhealth names first what keeps the server from working'] = function(world)
  world.env.ANTHROPIC_API_KEY = ''
  world:start({ 'a.txt' })
  local report = health_report(world)
  local warning, all = report:find('WARNING main', 1, true), report:find('doctor', 1, true)
  assert(warning and all and warning < all, report)
  assert(report:find('\n  sandbox  ', 1, true), 'it stands as the doctor wrote it: ' .. report)
end

tests['checkhealth and :Kode doctor ask the server behind another program, such as ssh'] = function(world)
  local report = healthy_report(world, { cmd = { 'env', 'BEFORE=1', World.program, '--stdio' } })
  assert(report:find(('env BEFORE=1 %s: kode-ls '):format(World.program), 1, true), report)
  world:command('Kode doctor')
  World.wait_until('the report of the doctor is there', function()
    return world:text():find('\nsandbox  ', 1, true) ~= nil
  end)
end

tests['without a server the command says what to do'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:start({ 'a.txt' }, { cmd = { 'no-such-server' } })
  world:command('Kode')
  World.wait_until('the user is told', function()
    return world:lua('return #notified') > 0
  end)
  assert(world:lua('return notified[1]'):find('no%-such%-server.*install'), world:lua('return notified[1]'))
  equal(world:lua('return #notified'), 1, 'the messages')
end

tests['wrong settings and sub-commands are named'] = function(world)
  world:start({ 'a.txt' })
  equal(
    world:lua("local ok, problem = pcall(require('kode').setup, { widht = 3 }); return { ok, problem }"),
    { false, 'kode: widht is unknown; see :help kode-settings' },
    'a name'
  )
  equal(
    world:lua("local ok, problem = pcall(require('kode').setup, { transcript = { interval = 'x' } }); return problem"),
    'kode: transcript.interval must be a number, not a string',
    'a type'
  )
  world:command('Kode fix the bug')
  World.wait_until('the user is told', function()
    return world:lua('return #notified') > 0
  end)
  assert(world:lua('return notified[1]'):find('no sub-command `fix`', 1, true), world:lua('return notified[1]'))
  equal(world:lua("return vim.fn.getcompletion('Kode ke', 'cmdline')"), { 'keep' }, 'the completion')
  equal(world:lua("return vim.fn.getcompletion('Kode mode pl', 'cmdline')"), { 'plan' }, 'the completion of a mode')
end

tests['the configuration works alone, and then the server speaks plain LSP'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('An answer.') })
  local alone = world.folder .. '/alone'
  World.write(alone .. '/lsp/kode.lua', World.read(World.plugin .. '/lsp/kode.lua'))
  world:start({})
  world:lua(
    [[
      local alone, plugin, program = ...
      vim.opt.runtimepath:remove(plugin)
      vim.opt.runtimepath:prepend(alone)
      vim.lsp.config('kode', { cmd = { program } })
      vim.lsp.enable('kode')
      progress = {}
      vim.api.nvim_create_autocmd('LspProgress', {
        callback = function(event) table.insert(progress, event.data.params.value) end,
      })
      vim.cmd.edit('a.txt')
    ]],
    alone,
    World.plugin,
    World.program
  )
  World.wait_until('it is attached', function()
    return world:lua([[
      local client = vim.lsp.get_clients({ bufnr = 0, name = 'kode' })[1]
      return client ~= nil and client.initialized
    ]])
  end)
  world:lua([[
    vim.lsp.get_clients({ name = 'kode' })[1]:exec_cmd({
      title = 'Ask', command = 'kode.ask', arguments = { { text = 'hello' } },
    })
  ]])
  World.wait_until('the turn has ended', function()
    return world:lua("return #progress > 0 and progress[#progress].kind == 'end'")
  end)
end

tests['a turn that a plain command has begun is asked about here as well'] = function(world)
  World.write(world:path('a.txt'), 'one\ntwo\n')
  world:serve({
    call('Read', { file_path = '{{cwd}}/a.txt' }),
    call('Edit', { file_path = '{{cwd}}/a.txt', old_string = 'two', new_string = 'TWO' }),
    say('Done.'),
  })
  world:start({})
  world:lua("vim.lsp.enable('kode'); vim.cmd.edit('a.txt')")
  World.wait_until('it is attached', function()
    return world:lua([[
      local client = vim.lsp.get_clients({ bufnr = 0, name = 'kode' })[1]
      return client ~= nil and client.initialized
    ]])
  end)
  world:lua([[
    vim.lsp.get_clients({ name = 'kode' })[1]:exec_cmd({
      title = 'Ask', command = 'kode.ask', arguments = { { text = 'hello' } },
    })
  ]])
  World.wait_until('it is told', function()
    return world:lua('return table.concat(notified)'):find('Kode asks', 1, true) ~= nil
  end)
  world:command('Kode open')
  world:wait_transcript('1  Deny')
  world:type('<C-w>k]p2')
  world:wait_text('one\nTWO\n', 'a.txt')
end

tests['what a file of the workspace asks for is shown, and approved as it was shown'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  World.write(world:path('.kode/settings.json'), '{ "permissions": { "allow": ["Bash(make *)"] } }')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:command('Kode send go')
  world:wait_turns(1)
  world:use_picker()
  world:command('Kode trust')
  World.wait_until('it is shown', function()
    return world:lua('return #asked') == 1
  end)
  local shown = world:lua('return asked[1].options.format_item(asked[1].items[1])')
  assert(shown:find('permissions.allow', 1, true) and shown:find('Bash(make *)', 1, true), shown)
  world:answer(shown)
  World.wait_until('it is asked about', function()
    return world:lua('return #asked') == 1
  end)
  equal(world:lua('return asked[1].items[1].label'), 'Not now', 'the first choice')
  local about = world:about()
  assert(about:find('Bash(make *)', 1, true), 'the request is shown: ' .. about)
  world:answer('Approve')
  World.wait_until('it is approved', function()
    return world:lua('return table.concat(notified)'):find('approved 1 request', 1, true) ~= nil
  end)
end

tests['a sandbox profile is chosen by a command and shown in the winbar'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  serve_answers(world)
  world:start({ 'a.txt' })
  world:open()
  world:send('first')
  world:wait_transcript('An answer to first.')
  local function shown()
    return world:lua("return require('kode').winbar()"):find('sandbox offline', 1, true) ~= nil
  end
  assert(not shown(), 'none at first')
  world:command('Kode sandbox offline')
  World.wait_until('the profile is shown', shown)
  world:command('Kode sandbox default')
  World.wait_until('the profile is gone', function()
    return not shown()
  end)
end

tests['a conversation in a git worktree is started and merged by commands'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  local function git(...)
    local command = { 'git', '-c', 'user.name=t', '-c', 'user.email=t@example.com', ... }
    equal(vim.system(command, { cwd = world:path('') }):wait().code, 0, 'git')
  end
  git('init', '--quiet')
  git('add', '.')
  git('commit', '--quiet', '-m', 'begin')
  world:serve({
    { when = '^make', steps = { call('Write', { file_path = 'b.txt', content = 'new\n' }), say('It is made.') } },
  })
  world:start({ 'a.txt' })
  world:open()
  world:command('Kode worktree new make it')
  world:wait_asked()
  world:command('Kode allow')
  world:wait_transcript('It is made.')
  assert(world:lua("return require('kode').winbar()"):find('worktree', 1, true), 'the winbar says so')
  assert(vim.uv.fs_stat(world:path('b.txt')) == nil, 'the workspace is as it was')
  world:command('Kode worktree merge')
  world:wait_transcript('1 file of the workspace is changed')
  equal(World.read(world:path('b.txt')), 'new\n', 'the merged file')
end

tests['a command of the server answers in the transcript'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Never asked.') })
  world:start({ 'a.txt' })
  world:open()
  world:send('/help')
  world:wait_transcript('## /help')
end

tests['a server that vim.lsp.enable has started is used'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('An answer.') })
  world:start({})
  world:lua("vim.lsp.enable('kode'); vim.cmd.edit('a.txt')")
  World.wait_until('it is attached', function()
    return world:lua("return #vim.lsp.get_clients({ bufnr = 0, name = 'kode' })") == 1
  end)
  world:open()
  world:send('go')
  world:wait_transcript('An answer.')
  equal(world:lua("return #vim.lsp.get_clients({ name = 'kode' })"), 1, 'the servers')
end

tests['a Neovim that ends while the server is being asked says nothing of it'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('An answer.') })
  world:start({ 'a.txt' })
  local wait = "vim.wait(20000, function() local c = vim.lsp.get_clients({ name = 'kode' })[1] return c and c.initialized end)"
  local command = { vim.v.progpath, '--headless', '-n', '-i', 'NONE', '-u', world.folder .. '/init.lua', 'a.txt' }
  local tell = 'vim.notify = function(text) io.stderr:write(text) end'
  vim.list_extend(command, { '-c', 'lua ' .. tell, '-c', 'Kode', '-c', 'lua ' .. wait, '-c', 'qa!' })
  local options = { cwd = world.folder .. '/project', env = world:environment(), text = true }
  local ended = vim.system(command, options):wait()
  -- Neovim itself may say that it waits for the server.
  assert(not (ended.stdout .. ended.stderr):find('kode:', 1, true), ended.stderr)
  equal(ended.code, 0, 'its exit code')
end

return tests
