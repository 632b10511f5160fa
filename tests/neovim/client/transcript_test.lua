--- The transcript: whole messages, cards, tables, names.
---
--- Rule: everything is done by keys and commands, as a person does it; the tests check the screen, or the text with its
--- marks.

local World = require('client.world')
local equal, call, say = World.equal, World.call, World.say

local tests = {}

local wide_table = '| module | what it does | who asked for it |\n|---|---|---|\n'
  .. '| reader | reads the file and splits it into the parts that the rest of the program needs to see | everybody |\n'
  .. '| writer | writes | nobody |\n'

tests['the end of an answer with a wide table is on the screen when it is whole'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  local text = ('A line of the answer.\n\n'):rep(20) .. wide_table .. '\n- one\n- two\n\nThe last sentence.'
  world:serve({ { content = { { type = 'text', text = text } }, chunk = 30 } })
  world:start({ 'a.txt' })
  world:open()
  world:send('tell me')
  world:wait_turns(1)
  world:wait_lua('the message is highlighted', [[
    local transcript = require('kode.surface').latest().transcript
    local namespace = require('kode.highlight').markdown
    return #transcript.to_highlight == 0 and #vim.api.nvim_buf_get_extmarks(transcript.buffer, namespace, 0, -1, {}) > 0
  ]], true)
  world:wait_screen('The last sentence.')
end

tests['a table that does not fit its window is not padded, and is once it fits'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say(wide_table) })
  world:start({ 'a.txt' }, { layout = 'tab' })
  world:open()
  world:send('tell me')
  world:wait_turns(1)
  local padding = [[
    local transcript = require('kode.surface').latest().transcript
    local namespace, count = require('kode.highlight').markdown, 0
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(transcript.buffer, namespace, 0, -1, { details = true })) do
      if mark[4].virt_text_pos == 'inline' then count = count + 1 end
    end
    return #transcript.to_highlight == 0 and count > 0
  ]]
  world:wait_lua('it is padded', padding, true)
  world:lua("vim.o.columns = 70; vim.api.nvim_exec_autocmds('VimResized', {})")
  world:wait_lua('it is not padded', padding, false)
end

tests['a card that is opened and closed again leaves nothing behind'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ call('Bash', { command = 'seq 1 3', description = 'Count' }), say('Counted.') })
  world:start({ 'a.txt' }, { init_options = { mode = 'bypassPermissions' } })
  world:open()
  world:send('count')
  world:wait_transcript('Counted.')
  world:type('<C-w>kgg/seq<CR>')
  local function marks()
    return world:lua([[
      local transcript = require('kode.surface').latest().transcript
      local namespace, found = require('kode.highlight').transcript, {}
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(transcript.buffer, namespace, 0, -1, { details = true })) do
        if mark[4].virt_text then table.insert(found, mark[2]) end
      end
      return found
    ]])
  end
  World.wait_until('the card has its mark', function()
    return #marks() == 1
  end)
  local before = marks()
  for _ = 1, 2 do
    world:type('<Tab>')
    world:wait_transcript('│ 3')
    world:type('<Tab>')
    World.wait_until('it is closed', function()
      return not world:transcript():find('│ 3', 1, true)
    end)
  end
  equal(marks(), before, 'the marks of the card')
end

tests['an attachment is listed once, whatever comes first from the server'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:open()
  world:lua([[
    -- The event about the draft comes before the answer to the request that stored it.
    local connection = require('kode.surface').latest().connection
    local request = connection.request
    connection.request = function(self, method, params, callback)
      request(self, method, params, function(...)
        local results = { ... }
        vim.defer_fn(function() callback(unpack(results)) end, method == 'agent/draft/set' and 300 or 0)
      end)
    end
  ]])
  world:command('Kode attach a.txt')
  World.wait_until('the draft was stored', function()
    return world:lua([[
      for _, data in ipairs(told) do
        if data.event.type == 'draft_changed' then return true end
      end
      return false
    ]])
  end)
  equal(world:lua('return #require("kode.surface").latest().parts'), 1, 'the attachments')
  world:use_picker()
  world:command('Kode detach')
  world:answer('a.txt')
  world:wait_lua('it is detached', 'return #require("kode.surface").latest().parts', 0)
end

tests['a turn has one heading, and its calls stand together'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({
    { content = { { type = 'text', text = 'First.' }, { type = 'tool_use', name = 'Read', input = { file_path = '{{cwd}}/a.txt' } } } },
    { content = {
      { type = 'tool_use', name = 'Glob', input = { pattern = '*.txt' } },
      { type = 'tool_use', name = 'Grep', input = { pattern = 'one' } },
    } },
    say('Last.'),
  })
  world:start({ 'a.txt' })
  world:open()
  world:send('look')
  world:wait_turns(1)
  world:wait_transcript('Last.')
  local _, headings = world:transcript():gsub('## Kode', '')
  equal(headings, 1, 'the headings')
  assert(world:transcript():find('▸ ✓ Read[^\n]*\n▸ ✓ [^\n]*\n▸ ✓ '), world:transcript())
end

tests['a refused call says what was refused, and why'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ call('Bash', { command = 'make install', description = 'Install' }), say('Then not.') })
  world:start({ 'a.txt' })
  world:open()
  world:send('install it')
  world:wait_transcript('1  Deny')
  world:command('Kode deny it needs root')
  world:wait_turns(1)
  world:wait_transcript('Then not.')
  local card = world:transcript():match('\n[▾▸v>] ⊘.-\n\n') or world:transcript()
  assert(card:find('make install', 1, true) and card:find('it needs root', 1, true), world:transcript())
end

tests['what was answered stands in the transcript'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({
    call('AskUserQuestion', {
      questions = {
        {
          question = 'Which color?',
          header = 'Color',
          multiSelect = false,
          options = { { label = 'Red', description = 'warm' }, { label = 'Blue', description = 'cold' } },
        },
      },
    }),
    say('Noted.'),
  })
  world:start({ 'a.txt' })
  world:open()
  world:send('ask me')
  world:wait_transcript('Which color?')
  world:type('<C-w>k]p2')
  world:wait_turns(1)
  world:wait_transcript('Noted.')
  assert(world:transcript():match('Ask: Color\n(.-)\n\n'):find('Blue', 1, true), world:transcript())
end

tests['todos stand below the transcript until they are done'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  local function todos(...)
    local list = {}
    for number, status in ipairs({ ... }) do
      list[number] = { content = 'Step ' .. number, status = status, activeForm = 'Doing step ' .. number }
    end
    return call('TodoWrite', { todos = list })
  end
  local held = say('Done.')
  held.gate = 'end'
  world:serve({ todos('completed', 'in_progress', 'pending'), held })
  world:start({ 'a.txt' })
  world:open()
  world:send('do it')
  world:wait_transcript('## To do: 1 of 3 done\n  [~] Step 2\n  [ ] Step 3')
  world:release('end')
  world:wait_turns(1)
end

tests['a team stands below the transcript with who waits for whom, and a message reaches a sub-agent'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  local function member(name)
    return { type = 'tool_use', name = 'Task', input = { description = 'it', prompt = 'do ' .. name, name = name, run_in_background = true } }
  end
  local function gated(step, gate)
    step.gate, step.gate_after_events = gate, 0
    return step
  end
  world:serve({
    { when = '^do one$', steps = { gated(call('WaitForMessage', { from = 'two' }), 'one'), say('One is done.') } },
    {
      when = '^do two$',
      steps = {
        gated(call('TeamTasks', { action = 'claim', task = 1 }), 'two'),
        gated(call('TeamTasks', { action = 'complete', task = 1 }), 'complete'),
        say('Two is done.'),
      },
    },
    {
      steps = {
        { content = { member('one'), member('two') } },
        call('TeamTasks', { action = 'add', title = 'Find the port' }),
        say('They work.'),
      },
    },
  })
  world:start({ 'a.txt' })
  world:open()
  world:send('go')
  world:wait_turns(1)
  world:release('one')
  world:wait_transcript('## Team: 2 sub-agents (:Kode team)\n  main  waits for your prompt\n  one   waits for two\n  two   works\n  [ ] 1. Find the port (free)')
  world:command('Kode team send two use port 80')
  world:wait_transcript('  two   works, 1 unread')
  world:release('two')
  world:wait_transcript('[~] 1. Find the port (two)')
  world:command('Kode team')
  world:wait_screen('two   works  (it)')
  world:command('close')
  world:release('complete')
  world:wait_lua('the team is gone', [[
    local transcript = require('kode.surface').latest().transcript
    return not table.concat(vim.api.nvim_buf_get_lines(transcript.buffer, 0, -1, false), '\n'):find('## Team', 1, true)
  ]], true)
end

tests['a goal stands below the transcript with its progress until it is removed'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Done.'), say('Really done.') })
  world:start({ 'a.txt' })
  world:open()
  world:send("/goal --check 'cat made.txt' --rounds 1 --minutes 5 Make the file")
  world:wait_transcript('## Goal, not met, no checks left: Make the file\n  check 1 of 1, $0.0')
  world:wait_transcript(' of 5 min\n  ')
  world:wait_turns(1)
  world:send('/goal clear')
  world:wait_transcript('The goal is removed')
  assert(not world:transcript():find('## Goal', 1, true), world:transcript())
end

tests['buffers are named after the conversation, also when it is renamed'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:open()
  world:send('mend the greeting')
  world:wait_turns(1)
  local tails = [[
    local tails = {}
    for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
      local name = vim.api.nvim_buf_get_name(buffer)
      if name:match('^kode://') then table.insert(tails, vim.fn.fnamemodify(name, ':t')) end
    end
    table.sort(tails)
    return tails
  ]]
  world:wait_lua('they are named', tails, { 'Prompt: mend the greeting', 'mend the greeting' })
  world:command('Kode rename A title/with a slash')
  world:wait_lua('they are renamed', tails, { 'A title∕with a slash', 'Prompt: A title∕with a slash' })
  equal(world:lua('return vim.b.kode_title'), 'A title/with a slash', 'the variable')
end

tests['dates are those of the user, and numbers have their nouns'] = function(world)
  world.env.TZ = 'America/New_York'
  world:start({})
  equal(
    world:lua([[
      local time, render = require('kode.time'), require('kode.render')
      return {
        time.minute('2026-11-24T00:00:05.25Z'), time.minute('2024-02-29T12:00:00Z'), time.minute('nonsense'),
        time.duration('2026-11-24T23:59:59Z', '2026-11-25T00:01:02.5Z'),
        render.count(1, 'file'), render.count(2, 'file'), render.count(0, 'file'),
      }
    ]]),
    { '2026-11-23 19:00', '2024-02-29 07:00', 'nonsense', '1 min 3 s', '1 file', '2 files', '0 files' },
    'the texts'
  )
end

tests['text that was removed above the first line is on the screen'] = function(world)
  World.write(world:path('a.txt'), 'one\ntwo\n')
  world:serve({
    call('Read', { file_path = '{{cwd}}/a.txt' }),
    call('Edit', { file_path = '{{cwd}}/a.txt', old_string = 'one', new_string = 'ONE' }),
    say('Edited.'),
  })
  world:start({ 'a.txt' }, { init_options = { mode = 'acceptEdits' } })
  world:command('Kode! edit')
  world:wait_turns(1)
  World.wait_until('both lines are on the screen', function()
    local screen = world:screen()
    return screen:find('ONE', 1, true) and screen:find('one\n', 1, true) and true or false
  end)
end

tests['a failing autocommand of another plugin does not end the opening'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:lua([[
    vim.api.nvim_create_autocmd('FileType', { pattern = { 'kode', 'kodeprompt' }, callback = function() error('another plugin') end })
  ]])
  world:open()
  world:send('go')
  world:wait_transcript('Fine.')
end

tests['a new conversation belongs to the project of the buffer'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  local other = world.folder .. '/other'
  World.write(other .. '/b.txt', 'two\n')
  vim.fn.mkdir(other .. '/.git', 'p')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:open()
  local root = "return require('kode.surface').latest().connection.root"
  equal(world:lua(root), world.folder .. '/project', 'the first root')
  world:type('<C-w>h')
  world:command('edit ' .. other .. '/b.txt')
  world:command('Kode new')
  world:wait_lua('the conversation is of the other project', root, other)
end

tests['an unknown layout is refused without a trace of the stack'] = function(world)
  world:start({ 'a.txt' })
  world:command('Kode open left')
  world:wait_told('no layout `left`: split, float, tab, current')
end

tests['a prompt is edited and sent again from the transcript'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({
    { when = '^first', steps = { say('To first.') } },
    { when = '^better', steps = { say('To better.') } },
  })
  world:start({ 'a.txt' })
  world:open()
  world:send('first try')
  world:wait_turns(1)
  world:wait_transcript('To first.')
  world:use_picker()
  world:type('<C-w>kgg/first try<CR>ge')
  world:answer('Conversation')
  world:wait_lua('the words are in the prompt', 'return require("kode.surface").latest().prompt:text()', 'first try')
  World.wait_until('the answer is gone', function()
    return not world:transcript():find('To first.', 1, true)
  end)
end

tests['a code block is yanked, inserted, and put in the place of lines'] = function(world)
  World.write(world:path('a.txt'), 'one\ntwo\nthree\n')
  world:serve({ say('Take this:\n\n```lua\nlocal x = 1\nreturn x\n```\n\nor not.') })
  world:start({ 'a.txt' })
  world:open()
  world:send('show me')
  world:wait_turns(1)
  world:wait_transcript('or not.')
  world:type('<C-w>kgg/return x<CR>gy')
  world:wait_lua('it is yanked', "return vim.fn.getreg('\"')", 'local x = 1\nreturn x\n')
  world:type('gi')
  world:wait_text('one\nlocal x = 1\nreturn x\ntwo\nthree\n', 'a.txt')
  world:type('<C-w>h')
  world:command('undo')
  world:wait_text('one\ntwo\nthree\n', 'a.txt')
  world:command('2,3Kode apply')
  world:wait_text('one\nlocal x = 1\nreturn x\n', 'a.txt')
  world:wait_lua('it is to be reviewed', "return require('kode.surface').latest().review:summary()", '1 file +2 -2')
end

tests['without a usable model the conversation says what is missing, and the one command'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:start({ 'a.txt' })
  world:open()
  world:wait_transcript(':Kode model demo')
  world:wait_screen('no model (:Kode setup)')
  world:command('Kode model demo')
  world:wait_transcript('Write what you want below')
  equal(world:lua("return vim.fn.getcompletion('Kode model de', 'cmdline')"), { 'demo' }, 'the completion')
end

tests['a crash shows one line and waits for no key'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Fine.') })
  world:start_terminal({ 'a.txt' }, 80, 24)
  world:lua("vim.cmd.runtime('plugin/kode.lua')")
  world:open()
  local pid = world:lua([[
    for _, child in ipairs(vim.api.nvim_get_proc_children(vim.fn.getpid())) do
      local process = vim.api.nvim_get_proc(child)
      if process and process.name:match('^kode') then return child end
    end
  ]])
  vim.uv.kill(pid, 'sigkill')
  world:wait_lua('another server is ready', [[
    local connection = require('kode.surface').latest().connection
    return #connection.crashes == 1 and connection.status == 'ready'
  ]], true)
  local screen = world:terminal_screen()
  assert(not screen:find('Press ENTER', 1, true) and not screen:find('quit with exit code', 1, true), screen)
end

return tests
