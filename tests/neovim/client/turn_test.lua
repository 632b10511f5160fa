--- A conversation: the prompt, the transcript, questions, the queue.
---
--- Rule: everything is done by keys and commands, as a person does it.

local World = require('client.world')
local equal, call, say = World.equal, World.call, World.say

local tests = {}

local waiting = "return require('kode').waiting()"

local function go_to_prompt(world)
  world:type('<C-w>k]p')
end

local function a_change(world, settings)
  World.write(world:path('a.txt'), 'one\ntwo\nthree\n')
  world:serve({
    call('Read', { file_path = '{{cwd}}/a.txt' }),
    call('Edit', { file_path = '{{cwd}}/a.txt', old_string = 'two', new_string = 'TWO' }),
    say('I have changed it.'),
  })
  world:start({ 'a.txt' }, settings)
  world:open()
  world:send('change it')
  world:wait_asked()
  world:wait_transcript('1  Deny')
end

tests['loading nothing before the first use'] = function(world)
  world:start({ 'a.txt' })
  equal(
    world:lua([[
      local loaded = {}
      for name in pairs(package.loaded) do
        if name:match('^kode') then table.insert(loaded, name) end
      end
      return loaded
    ]]),
    {},
    'the modules'
  )
  equal(world:lua("return require('kode').statusline() .. require('kode').winbar()"), '', 'the statusline and the winbar')
  equal(world:lua('return #vim.lsp.get_clients()'), 0, 'the servers')
end

tests['a turn from the prompt to the answer'] = function(world)
  a_change(world)
  world:shot('permission')
  go_to_prompt(world)
  world:type('2')
  world:wait_transcript('I have changed it.')
  world:wait_text('one\nTWO\nthree\n', 'a.txt')
  local transcript = world:transcript()
  assert(transcript:find('## You\nchange it', 1, true), transcript)
  assert(transcript:find('✓ Edit', 1, true) or transcript:find('✓ Edi', 1, true), transcript)
  equal(world:text('Prompt: change it'), '\n', 'the prompt')
  world:shot('answer')
end

tests['the conversation never takes the cursor, and follows only where one stands at its end'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  local long = {}
  for number = 1, 120 do
    long[number] = 'line ' .. number
  end
  world:serve({ { content = { { type = 'text', text = table.concat(long, '\n\n') } }, chunk = 40 } })
  world:start({ 'a.txt' })
  world:open()
  world:send('tell me')
  world:wait_transcript('line 120')
  world:wait_turns(1)
  World.wait_until('the last line is seen', function()
    return world:screen():find('line 120', 1, true) ~= nil
  end)
  -- The user reads above: nothing moves any more.
  world:type('<C-w>kgg')
  World.wait_until('the cursor is there', function()
    return vim.deep_equal(world:lua('return { vim.bo.filetype, vim.fn.line(".") }'), { 'kode', 1 })
  end)
  world:lua("require('kode').send('again')")
  world:wait_turns(2)
  world:wait_transcript('## You\nagain')
  equal(world:lua('return vim.api.nvim_win_get_cursor(0)'), { 1, 0 }, 'the cursor')
  equal(world:lua("return vim.fn.line('w0')"), 1, 'the first line that is seen')
end

tests['a cursor on the last line keeps its column when the transcript is drawn again'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ { content = { { type = 'text', text = 'one two three' } } } })
  world:start({ 'a.txt' })
  world:open()
  world:send('tell me')
  world:wait_transcript('one two three')
  world:wait_turns(1)
  world:type('<C-w>kG0ww')
  local column = 'return vim.api.nvim_win_get_cursor(0)[2]'
  World.wait_until('the cursor is on the third word', function()
    return world:lua(column) == 8
  end)
  world:lua("require('kode.surface').latest().transcript:follow({ vim.api.nvim_get_current_win() })")
  equal(world:lua(column), 8, 'the column')
end

tests['number keys answer only on the prompt and in Normal mode'] = function(world)
  a_change(world)
  -- In the prompt a number is a count, and in Insert mode text.
  world:type('i1<Esc>')
  World.wait_until('it was typed', function()
    return world:text():find('1', 1, true) ~= nil
  end)
  equal(world:lua(waiting), 1, 'what waits after a 1 in the prompt')
  -- On another line of the transcript it is a count.
  world:type('<C-w>kgg2j')
  World.wait_until('the count has counted', function()
    return world:lua('return vim.api.nvim_win_get_cursor(0)[1]') == 3
  end)
  equal(world:lua(waiting), 1, 'what waits after a 2 elsewhere')
  world:type(']p')
  world:type('1')
  World.wait_until('it is answered', function()
    return world:lua(waiting) == 0
  end)
  world:wait_turns(1)
  world:wait_text('one\ntwo\nthree\n', 'a.txt')
  world:wait_transcript('⊘')
end

tests['a prompt that has just moved under the cursor takes no key'] = function(world)
  a_change(world, { settle = 100000 })
  go_to_prompt(world)
  world:type('2')
  World.wait_until('the user is told', function()
    return world:lua('return #notified') > 0
  end)
  assert(world:lua('return notified[#notified]'):find('press the key again'), 'what is told')
  equal(world:lua(waiting), 1, 'what waits')
end

tests['a picker has the answers of the transcript in their order, and shows the whole change'] = function(world)
  a_change(world)
  local inline = {}
  for key, label in world:transcript():gmatch('\n  (%w+) +(%u[^\n]*)') do
    inline[#inline + 1] = key:match('^%d$') and label or nil
  end
  equal({ inline[1], inline[2] }, { 'Deny', 'Allow once' }, 'the first answers')
  world:use_picker()
  world:command('Kode permission')
  World.wait_until('it asks', function()
    return world:lua('return #asked') == 1
  end)
  local offered = world:lua('return vim.tbl_map(function(choice) return choice.label end, asked[1].items)')
  equal(vim.list_slice(offered, 1, #inline), inline, 'the answers with a number')
  local about = world:about()
  assert(about:find('\n+TWO\n', 1, true) and about:find('Reason: ', 1, true), about)
  equal(world:answer('Allow once'), 'Edit a.txt?', 'the title')
  world:wait_turns(1)
  world:wait_text('one\nTWO\nthree\n', 'a.txt')
  equal(world:about(), '', 'the text after the answer')
end

tests['a picker shows the command that is approved, however long'] = function(world)
  local command = 'make one && echo ' .. ('x'):rep(200) .. ' && make last'
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ call('Bash', { command = command, description = 'Build' }), say('Built.') })
  world:start({ 'a.txt' })
  world:command('Kode! build it')
  world:wait_asked()
  world:use_picker()
  world:command('Kode permission')
  World.wait_until('it asks', function()
    return world:lua('return #asked') == 1
  end)
  assert(world:about():find('$ ' .. command, 1, true), world:about())
  local title = world:lua('return asked[1].options.prompt')
  assert(not title:find('\n') and vim.api.nvim_strwidth(title) <= 61, title)
  world:answer('Deny')
  world:wait_turns(1)
end

tests['the number that denies in the transcript denies in the list of Neovim itself'] = function(world)
  a_change(world)
  world:command('Kode permission')
  World.wait_until('the list reads a number', function()
    return world:mode() == 'c'
  end)
  world:type('1<CR>')
  world:wait_turns(1)
  world:wait_text('one\ntwo\nthree\n', 'a.txt')
  equal(
    world:lua([[
      for _, data in ipairs(told) do
        if data.event.type == 'permission_decided' then return data.event.outcome end
      end
    ]]),
    'deny',
    'the decision'
  )
end

tests['what waits is told when no transcript shows it, once'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({
    call('Read', { file_path = '{{cwd}}/a.txt' }),
    call('Edit', { file_path = '{{cwd}}/a.txt', old_string = 'one', new_string = 'ONE' }),
    say('Done.'),
  })
  world:start({ 'a.txt' })
  world:command('Kode! change it')
  world:wait_asked()
  World.wait_until('it is told', function()
    return world:lua('return #notified') == 1
  end)
  assert(world:lua('return notified[1]'):find('Kode asks'), world:lua('return notified[1]'))
  equal(world:lua('return #vim.api.nvim_list_wins()'), 1, 'the windows')
  assert(world:lua("return require('kode').statusline()"):find('waits for you'), 'the statusline')
  world:use_picker()
  world:command('Kode permission')
  world:answer('Allow once')
  world:wait_turns(1)
  World.wait_until('the end is told', function()
    return world:lua('return #notified') == 2
  end)
  assert(world:lua('return notified[2]'):find('done'), world:lua('return notified[2]'))
end

tests['a no with words is heard by the model'] = function(world)
  a_change(world)
  world:lua([[vim.ui.input = function(_, done) done('use three instead') end]])
  go_to_prompt(world)
  world:type('gw')
  world:wait_turns(1)
  assert(
    world:lua([[
      for _, data in ipairs(told) do
        if data.event.type == 'permission_decided' then return data.event.feedback end
      end
    ]]) == 'use three instead',
    'the feedback'
  )
end

tests['prompts wait, come ahead, and are dropped'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  local held = say('The first answer.')
  held.gate = 'first'
  world:serve({
    { when = '^one', steps = { held } },
    { when = '^two', steps = { say('The second answer.') } },
    { when = '^three', steps = { say('The third answer.') } },
  })
  world:start({ 'a.txt' })
  world:open()
  world:send('one')
  World.wait_until('a turn runs', function()
    return world:lua("return require('kode').session().state") == 'WORKING'
  end)
  world:send('two')
  world:wait_transcript('two')
  world:send('three')
  world:wait_transcript('## Queue')
  world:wait_transcript('three')
  world:shot('queue')
  world:use_picker()
  world:command('Kode queue')
  world:answer('2  three')
  world:answer('Move up')
  World.wait_until('three is before two', function()
    return world:lua("return require('kode').session().queue[1].text") == 'three'
  end)
  world:command('Kode queue')
  world:answer('2  two')
  world:answer('Remove')
  World.wait_until('two is gone', function()
    return world:lua("return #require('kode').session().queue") == 1
  end)
  world:release('first')
  world:wait_turns(2)
  world:wait_transcript('The third answer.')
  assert(not world:transcript():find('The second answer.', 1, true), 'two was dropped')
end

tests['a running turn is stopped'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  local held = say('Never said.')
  held.gate = 'never opened'
  world:serve({ held })
  world:start({ 'a.txt' })
  world:open()
  world:send('think for ever')
  World.wait_until('a turn runs', function()
    return world:lua("return require('kode').session().state") == 'WORKING'
  end)
  world:type('<C-c>')
  world:wait_turns(1)
  equal(world:lua("return require('kode').session().done.stopReason"), 'cancelled', 'why it ended')
end

tests['the draft is kept with the session'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Never asked.') })
  world:start({ 'a.txt' })
  world:open()
  world:type('iunsent words<Esc>')
  World.wait_until('the server has it', function()
    return world:lua([[
      local kept
      require('kode').request('agent/session/load', { sessionId = require('kode').session().id }, function(_, snapshot)
        kept = snapshot.draft and snapshot.draft.text or ''
      end)
      vim.wait(1000, function() return kept ~= nil end)
      return kept
    ]]) == 'unsent words'
  end)
  world:type('q')
  World.wait_until('the windows are gone', function()
    return #world:lua('return vim.api.nvim_list_wins()') == 1
  end)
  local id = world:lua("return require('kode.surface').latest().session.id")
  world:command('quitall!')
  World.wait_until('it has ended', function()
    return vim.fn.jobwait({ world.nvim }, 0)[1] ~= -1
  end)
  world:start({ 'a.txt' })
  world:command('Kode resume')
  World.wait_until('the conversation is open', function()
    return world:lua('return vim.bo.filetype') == 'kodeprompt'
  end)
  equal(world:lua("return require('kode').session().id"), id, 'the session')
  equal(world:text(), 'unsent words\n', 'the prompt')
end

tests['a range goes with the prompt'] = function(world)
  World.write(world:path('a.txt'), 'one\ntwo\nthree\n')
  world:serve({ say('I see.') })
  world:start({ 'a.txt' })
  world:command('2,3Kode send what is this')
  world:wait_turns(1)
  local request = world:newest_request()
  assert(request:find('two\\\\nthree', 1, true) or request:find('two\\nthree', 1, true), request:sub(-2000))
end

tests['a question is answered by a key'] = function(world)
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
    say('You said: {{last_result}}'),
  })
  world:start({ 'a.txt' })
  world:open()
  world:send('ask me')
  world:wait_asked()
  world:wait_transcript('Which color?')
  go_to_prompt(world)
  world:shot('question')
  world:type('2')
  world:wait_turns(1)
  world:wait_transcript('Blue')
end

tests['a plan is changed and accepted'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({
    call('ExitPlanMode', { plan = '1. Look\n2. Leap' }),
    say('As you like.'),
  })
  world:start({ 'a.txt' })
  world:command('Kode open')
  World.wait_until('the conversation is open', function()
    return world:lua('return vim.bo.filetype') == 'kodeprompt'
  end)
  world:command('Kode mode plan')
  World.wait_until('the mode is set', function()
    return world:lua("return require('kode').session().mode") == 'plan'
  end)
  world:send('plan it')
  world:wait_asked()
  world:wait_transcript('2. Leap')
  go_to_prompt(world)
  local key = world:transcript():match('(%d)  Change the plan')
  world:type(key)
  World.wait_until('the plan can be changed', function()
    return world:text() == '1. Look\n2. Leap\n'
  end)
  world:type('Go3. Rest<Esc>')
  world:command('write')
  world:wait_turns(1)
  assert(
    world:lua([[
      for _, data in ipairs(told) do
        if data.event.type == 'question_answered' then return data.event.plan end
      end
    ]]) == '1. Look\n2. Leap\n3. Rest',
    'the plan'
  )
end

tests['cards open, show all, and lead to their file'] = function(world)
  World.write(world:path('a.txt'), 'one\ntwo\nthree\n')
  world:serve({
    call('Bash', { command = 'seq 1 300', description = 'Count' }),
    call('Read', { file_path = '{{cwd}}/a.txt' }),
    say('See a.txt:2 for it.'),
  })
  world:start({ 'a.txt' })
  world:lua("vim.g.kode = vim.tbl_extend('force', vim.g.kode, { init_options = { mode = 'bypassPermissions' } })")
  world:open()
  world:send('count')
  world:wait_turns(1)
  world:wait_transcript('See a.txt:2')
  world:type('<C-w>kgg/seq<CR>')
  world:type('<Tab>')
  world:wait_transcript('│ 200')
  assert(not world:transcript():find('│ 201\n', 1, true), 'an open card is bounded')
  world:shot('card')
  world:type('K')
  World.wait_until('all of it is shown', function()
    return world:text():find('\n300\n', 1, true) ~= nil
  end)
  world:type('q')
  world:type('<Tab>')
  World.wait_until('it is closed', function()
    return not world:transcript():find('│ 200', 1, true)
  end)
  world:type('/See a<CR>wgf')
  World.wait_until('the file is gone to', function()
    return world:lua('return vim.fs.basename(vim.api.nvim_buf_get_name(0))') == 'a.txt'
  end)
  equal(world:lua('return vim.api.nvim_win_get_cursor(0)[1]'), 2, 'the line')
end

tests['a finished message is highlighted, whatever is above it'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Some **bold** text:\n\n```lua\nlocal x = 1\n```') })
  world:start({ 'a.txt' })
  world:open()
  world:send('first')
  world:wait_turns(1)
  local function lines_of(group)
    return world:lua(
      [[
        local group = ...
        local bufnr = require('kode.surface').latest().transcript.buffer
        local lines = {}
        local namespace = require('kode.highlight').markdown
        for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(bufnr, namespace, 0, -1, { details = true })) do
          if mark[4].hl_group == group then
            table.insert(lines, vim.api.nvim_buf_get_lines(bufnr, mark[2], mark[2] + 1, true)[1])
          end
        end
        return lines
      ]],
      group
    )
  end
  World.wait_until('it is highlighted', function()
    return vim.deep_equal(lines_of('@markup.strong.markdown_inline'), { 'Some **bold** text:' })
  end)
  equal(lines_of('@keyword.lua'), { 'local x = 1' }, 'the code')
end

tests['columns of tables stand below each other, whatever the width of their characters'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('| name | 大小 | n |\n|---|:--|--:|\n| 文件 | a \\| b | 1 |\n| x | | 1000 |\n\nIt is `so`.') })
  world:start({ 'a.txt' })
  world:open()
  world:send('first')
  world:wait_turns(1)
  for _, line in ipairs({
    '| name | 大小   |    n |',
    '|------|:-------|-----:|',
    '| 文件 | a \\| b |    1 |',
    '| x    |        | 1000 |',
  }) do
    world:wait_screen(line)
  end
  equal(world:transcript():find('| x | | 1000 |', 1, true) ~= nil, true, 'the text is as it was written')
end

tests['for screen readers the state of a card is in its line'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ call('Read', { file_path = '{{cwd}}/a.txt' }), say('Read.') })
  world:start({ 'a.txt' }, { transcript = { linear = true, ascii = true } })
  world:open()
  world:send('read it')
  world:wait_turns(1)
  world:wait_transcript('> done Read a.txt (')
  equal(
    world:lua([[
      local bufnr = require('kode.surface').latest().transcript.buffer
      local namespace = require('kode.highlight').transcript
      return #vim.tbl_filter(function(mark)
        return mark[4].virt_text ~= nil
      end, vim.api.nvim_buf_get_extmarks(bufnr, namespace, 0, -1, { details = true }))
    ]]),
    0,
    'virtual texts'
  )
end

tests['messages are gone through by keys'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({
    { when = '^first', steps = { say('To first.') } },
    { when = '^second', steps = { say('To second.') } },
  })
  world:start({ 'a.txt' })
  world:open()
  world:send('first')
  world:wait_turns(1)
  world:send('second')
  world:wait_turns(2)
  world:wait_transcript('To second.')
  world:type('<C-w>kgg')
  for _, expected in ipairs({ '## You', '## Kode', '## You', '## Kode' }) do
    local before = world:lua('return vim.api.nvim_win_get_cursor(0)[1]')
    world:type(']]')
    World.wait_until('the cursor has moved', function()
      return world:lua('return vim.api.nvim_win_get_cursor(0)[1]') > before
    end)
    equal(world:lua('return vim.api.nvim_get_current_line()'), expected, 'the heading')
  end
end

tests['a running command is moved to the background, runs on, and its output is shown'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  local command = 'echo before; until [ -e go-on ]; do sleep 0.05; done; echo after'
  world:serve({ call('Bash', { command = command }), say('It runs on.') })
  world:start({ 'a.txt' }, { init_options = { mode = 'bypassPermissions' } })
  world:open()
  world:command('Kode background')
  world:wait_lua('it says that none runs', [[
    return (require('kode.notify').kept()[1] or ''):find('no command runs now', 1, true) ~= nil
  ]], true)
  world:send('go')
  world:wait_lua('the command runs', [[
    local session = require('kode.surface').latest().session
    return session:running_command() ~= nil and vim.tbl_contains(vim.tbl_values(session.progress), 'before\n')
  ]], true)
  world:command('Kode background')
  world:wait_transcript('It runs on.')
  world:wait_lua('it runs in the background', [[
    local session = require('kode.surface').latest().session
    return session.tasks.bash_1 ~= nil and session:running_command() == nil
  ]], true)
  World.write(world:path('go-on'), '')
  world:wait_lua('it has ended', "return require('kode.surface').latest().session.tasks.bash_1 == nil", true)
  world:command('Kode tasks')
  world:wait_screen('after')
end

return tests
