--- The effect of the agent's edits on buffers.
---
--- Rule: each test checks the buffer, the disk and the buffer list, not at what the plugin says about them.

local World = require('client.world')
local equal, call, say = World.equal, World.call, World.say

local tests = {}

local function edit(name, old, new)
  return call('Edit', { file_path = '{{cwd}}/' .. name, old_string = old, new_string = new })
end

local function read(name)
  return call('Read', { file_path = '{{cwd}}/' .. name })
end

--- Lets the agent edit without asking and sends a prompt.
local function run(world, turns)
  world:lua([[
    require('kode.surface').with(function(surface)
      surface:ask('agent/session/configure', { mode = 'acceptEdits' }, function()
        surface:send('go')
      end)
    end)
  ]])
  world:wait_turns(turns or 1)
end

tests['a loaded buffer without changes is edited, written and still has none'] = function(world)
  World.write(world:path('a.txt'), 'one\ntwo\nthree\n')
  world:serve({ read('a.txt'), edit('a.txt', 'two', 'TWO'), say('Done.') })
  world:start({ 'a.txt' })
  run(world)
  world:wait_text('one\nTWO\nthree\n', 'a.txt')
  equal(world:lua('return vim.bo.modified'), false, 'modified')
  equal(World.read(world:path('a.txt')), 'one\nTWO\nthree\n', 'the file')
end

tests['a save of the plugin is no decision, a save of the user is one'] = function(world)
  World.write(world:path('a.txt'), 'one\ntwo\nthree\n')
  world:serve({ read('a.txt'), edit('a.txt', 'two', 'TWO'), say('Done.') })
  world:start({ 'a.txt' })
  run(world)
  local summary = "return require('kode.surface').latest().review:summary()"
  World.wait_until('the change is listed', function()
    return world:lua(summary) == '1 file +1 -1'
  end)
  world:command('write')
  World.wait_until('saving has kept it', function()
    return world:lua(summary) == vim.NIL
  end)
end

tests['a buffer with unsaved changes keeps them unsaved'] = function(world)
  World.write(world:path('a.txt'), 'one\ntwo\nthree\n')
  world:serve({ read('a.txt'), edit('a.txt', 'two', 'TWO'), say('Done.') })
  world:start({ 'a.txt' })
  world:type('Gomine<Esc>')
  run(world)
  world:wait_text('one\nTWO\nthree\nmine\n', 'a.txt')
  equal(world:lua('return vim.bo.modified'), true, 'modified')
  equal(World.read(world:path('a.txt')), 'one\ntwo\nthree\n', 'the file')
end

tests['an edit is one undo step, also in the middle of typing'] = function(world)
  World.write(world:path('a.txt'), 'one\ntwo\nthree\nfour\n')
  local slow = edit('a.txt', 'two', 'TWO')
  slow.gate = 'typing'
  world:serve({ read('a.txt'), slow, say('Done.') })
  world:start({ 'a.txt' })
  world:type('Gomine')
  world:lua([[
    require('kode.surface').with(function(surface)
      surface:ask('agent/session/configure', { mode = 'acceptEdits' }, function() surface:send('go') end)
    end)
  ]])
  world:wait_text('one\ntwo\nthree\nfour\nmine\n', 'a.txt')
  world:release('typing')
  world:wait_text('one\nTWO\nthree\nfour\nmine\n', 'a.txt')
  world:type(' too<Esc>')
  world:wait_text('one\nTWO\nthree\nfour\nmine too\n', 'a.txt')
  world:wait_turns(1)
  equal(world:lua('return vim.api.nvim_win_get_cursor(0)'), { 5, 7 }, 'the cursor')
  -- The agent's edit is a step of its own, and so is the typed text before and after it.
  world:type('u')
  world:wait_text('one\nTWO\nthree\nfour\nmine\n', 'a.txt')
  world:type('u')
  world:wait_text('one\ntwo\nthree\nfour\nmine\n', 'a.txt')
  world:type('u')
  world:wait_text('one\ntwo\nthree\nfour\n', 'a.txt')
  world:type('<C-r><C-r><C-r>')
  world:wait_text('one\nTWO\nthree\nfour\nmine too\n', 'a.txt')
end

tests['cursor, view, marks, folds and jumps stay where they are in the text'] = function(world)
  local lines = {}
  for number = 1, 200 do
    lines[number] = 'line ' .. number
  end
  World.write(world:path('a.txt'), table.concat(lines, '\n') .. '\n')
  world:serve({
    read('a.txt'),
    call('MultiEdit', {
      file_path = '{{cwd}}/a.txt',
      edits = {
        { old_string = 'line 10\n', new_string = 'line 10\nnew\nnew\nnew\n' },
        { old_string = 'line 190\n', new_string = 'LINE 190\n' },
      },
    }),
    say('Done.'),
  })
  world:start({ 'a.txt' })
  world:type('50Gmm:150,160fold<CR>100Gzt$')
  World.wait_until('the cursor is there', function()
    return vim.deep_equal(world:lua('return vim.api.nvim_win_get_cursor(0)'), { 100, 7 })
  end)
  local jumps = world:lua('return vim.fn.getjumplist()[1]')
  run(world)
  World.wait_until('the edit is there', function()
    return world:lua('return vim.api.nvim_buf_line_count(0)') == 203
  end)
  equal(world:lua('return vim.api.nvim_get_current_line()'), 'line 100', 'the line of the cursor')
  equal(world:lua('return vim.api.nvim_win_get_cursor(0)[2]'), 7, 'the column')
  equal(world:lua("return vim.fn.getline(vim.fn.line('w0'))"), 'line 100', 'the first line that is seen')
  equal(world:lua([[return vim.fn.getline("'m")]]), 'line 50', 'the mark')
  equal(world:lua('return { vim.fn.foldclosed(153), vim.fn.foldclosedend(153) }'), { 153, 163 }, 'the fold')
  equal(#world:lua('return vim.fn.getjumplist()[1]'), #jumps, 'the jumps')
end

tests['fifty edited files list and load no buffer'] = function(world)
  local reads, edits = {}, {}
  for number = 1, 50 do
    local name = ('file%d.txt'):format(number)
    World.write(world:path(name), 'old\n')
    reads[number] = read(name).content[1]
    edits[number] = edit(name, 'old', 'new').content[1]
  end
  local steps = { { content = reads }, { content = edits }, say('Done.') }
  World.write(world:path('mine.txt'), 'mine\n')
  world:serve(steps)
  world:start({ 'mine.txt' })
  local counts = [[
    local listed, loaded = 0, 0
    for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
      if vim.bo[bufnr].buflisted then listed = listed + 1 end
      if vim.api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].buftype == '' then loaded = loaded + 1 end
    end
    return { listed, loaded }
  ]]
  local before = world:lua(counts)
  run(world)
  equal(World.read(world:path('file50.txt')), 'new\n', 'the last file')
  equal(world:lua(counts), before, 'listed and loaded buffers')
  equal(world:lua('return vim.fs.basename(vim.api.nvim_buf_get_name(0))'), 'mine.txt', 'the current buffer')
  World.wait_until('all of it is to be reviewed', function()
    return world:lua("return require('kode.surface').latest().review:summary()") == '50 files +50 -50'
  end)
  equal(world:lua(counts), before, 'listed and loaded buffers after the review was listed')
end

--- How many turns have ended.
local function turns_ended(world)
  return world:lua([[
    local count = 0
    for _, data in ipairs(told) do if data.event.type == 'done' then count = count + 1 end end
    told = vim.tbl_filter(function(data) return data.event.type == 'done' end, told)
    return count
  ]])
end

--- Types while the agent works: for one of its turns, or for KODE_LS_SOAK_SECONDS.
---@param world World
---@param type_something fun()
local function type_meanwhile(world, type_something)
  local deadline = vim.uv.now() + 1000 * (tonumber(vim.env.KODE_LS_SOAK_SECONDS) or 0)
  local turns = 1
  local start = vim.uv.now()
  repeat
    type_something()
    local ended = turns_ended(world)
    if ended == turns and vim.uv.now() < deadline then
      turns, start = turns + 1, vim.uv.now()
      world:lua("require('kode').send('go')")
    end
    assert(vim.uv.now() - start < 120000, 'the turn ends')
  until ended == turns
  return turns
end

tests['thirty edits while somebody types misplace no character'] = function(world)
  local steps = {}
  World.write(world:path('theirs.txt'), 'count 0\n')
  World.write(world:path('mine.txt'), '')
  steps[1] = read('theirs.txt')
  for number = 1, 30 do
    steps[#steps + 1] = edit('theirs.txt', 'count ' .. (number - 1), 'count ' .. number % 30)
  end
  steps[#steps + 1] = say('Done.')
  world:serve(steps)
  world:start({ 'mine.txt' })
  -- Both files are loaded, and the conversation is open: there is a window to be moved to by mistake.
  world:command('badd theirs.txt | call bufload("theirs.txt") | Kode open')
  World.wait_until('the conversation is open', function()
    return #world:lua('return vim.api.nvim_list_wins()') == 3
  end)
  world:type('<C-w>t')
  local window = world:lua('return vim.api.nvim_get_current_win()')
  equal(world:lua('return vim.fs.basename(vim.api.nvim_buf_get_name(0))'), 'mine.txt', 'the window')
  world:lua([[
    moved, edited = {}, 0
    vim.api.nvim_create_autocmd({ 'WinEnter', 'BufEnter', 'TabEnter', 'ModeChanged' }, {
      callback = function(event)
        if event.event ~= 'ModeChanged' or not vim.v.event.new_mode:match('^i') then
          table.insert(moved, event.event .. ' ' .. vim.api.nvim_buf_get_name(0))
        end
      end,
    })
    vim.api.nvim_buf_attach(vim.fn.bufnr('theirs.txt'), false, { on_lines = function() edited = edited + 1 end })
  ]])
  run(world, 0)
  local typed, count = {}, 0
  world:type('i')
  local turns = type_meanwhile(world, function()
    for _ = 1, 5 do
      count = count + 1
      -- A line of some length at most, as people have them.
      local is_end = count % 20 == 0
      typed[#typed + 1] = ('w%d%s'):format(count, is_end and '\n' or ' ')
      world:type(('w%d%s'):format(count, is_end and '<CR>' or ' '))
    end
    vim.wait(10)
  end)
  World.wait_until('all that was typed is there', function()
    return world:text('mine.txt') == table.concat(typed) .. '\n'
  end)
  equal(world:text('theirs.txt'), 'count 0\n', 'the edited file')
  assert(world:lua('return edited') >= 30 * turns, 'the file was edited again and again')
  equal(world:lua('return vim.api.nvim_get_current_win()'), window, 'the window')
  equal(world:lua('return moved'), {}, 'what was entered meanwhile')
  equal(world:mode(), 'i', 'the mode')
end

tests['what was typed into the same file meanwhile stays'] = function(world)
  local steps = { read('a.txt') }
  local lines = { 'mine:' }
  for number = 1, 20 do
    lines[#lines + 1] = ('theirs %d: old'):format(number)
    steps[#steps + 1] = edit('a.txt', ('theirs %d: old'):format(number), ('theirs %d: new'):format(number))
  end
  for number = 1, vim.env.KODE_LS_SOAK_SECONDS and 20 or 0 do
    steps[#steps + 1] = edit('a.txt', ('theirs %d: new'):format(number), ('theirs %d: old'):format(number))
  end
  steps[#steps + 1] = say('Done.')
  World.write(world:path('a.txt'), table.concat(lines, '\n') .. '\n')
  world:serve(steps)
  world:start({ 'a.txt' })
  world:type('ggA')
  run(world, 0)
  local typed = 'mine:'
  type_meanwhile(world, function()
    typed = typed .. 'x'
    world:type('x')
    -- Faster than people type, with a rest at the end of a word as they have it: without one, an edit waits 8 s before it is given up.
    vim.wait(#typed % 16 == 0 and 200 or 15)
  end)
  World.wait_until('all that was typed is in its line', function()
    return world:lua('return vim.fn.getline(1)') == typed
  end)
  -- An edit that typing has overtaken again and again is given up, which the agent is notified; no other line may be old.
  local states = world:lua([[
    local states = {}
    for _, item in ipairs(require('kode').session().items) do
      if item.body.name == 'Edit' then table.insert(states, item.body.state) end
    end
    return states
  ]])
  local made = 0
  for number = 1, 20 do
    local line = world:lua('return vim.fn.getline(...)', number + 1)
    local is_made = states[number] == 'COMPLETED'
    made = made + (is_made and 1 or 0)
    if not vim.env.KODE_LS_SOAK_SECONDS then
      equal(line, ('theirs %d: %s'):format(number, is_made and 'new' or 'old'), 'a line after a call that is ' .. states[number])
    end
    assert(line == ('theirs %d: old'):format(number) or line == ('theirs %d: new'):format(number), line)
  end
  -- How many typing overtakes depends on the machine.
  assert(made >= 5, ('%d of 20 edits were made'):format(made))
end

tests['an edit of another version, of a closed file or a locked buffer is refused'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Done.') })
  world:start({ 'a.txt' })
  world:command('Kode send go')
  world:wait_turns(1)
  local function apply(name, past)
    return world:lua(
      [[
        local path, past = ...
        local client = vim.lsp.get_clients({ name = 'kode' })[1]
        local version = (vim.lsp.util.buf_versions[vim.fn.bufnr('a.txt')] or 0) - past
        local range = { start = { line = 0, character = 0 }, ['end'] = { line = 0, character = 3 } }
        return require('kode.edits').apply({
          edit = {
            documentChanges = {
              {
                textDocument = { uri = vim.uri_from_fname(path), version = version },
                edits = { { range = range, newText = 'ONE' } },
              },
            },
          },
        }, client.id)
      ]],
      world:path(name),
      past
    )
  end
  local stale = apply('a.txt', 1)
  equal(stale.applied, false, 'a past version')
  assert(stale.failureReason:find('the text has changed', 1, true), stale.failureReason)
  equal(apply('b.txt', 0).applied, false, 'a closed file')
  equal(world:lua("return vim.fn.bufexists('b.txt')"), 0, 'a buffer for it')
  world:command('setlocal nomodifiable')
  equal(apply('a.txt', 0).applied, false, 'a locked buffer')
  equal(world:text('a.txt'), 'one\n', 'the text')
  world:command('setlocal modifiable')
  equal(apply('a.txt', 0).applied, true, 'the right version')
  equal(world:text('a.txt'), 'ONE\n', 'the text then')
end

tests['a file that changed on the disk is read anew before it is edited'] = function(world)
  World.write(world:path('a.txt'), 'one\ntwo\nthree\n')
  local slow = edit('a.txt', 'two', 'TWO')
  slow.gate = 'disk'
  world:serve({ read('a.txt'), slow, say('Done.') })
  world:start({ 'a.txt' })
  world:lua([[
    require('kode.surface').with(function(surface)
      surface:ask('agent/session/configure', { mode = 'acceptEdits' }, function() surface:send('go') end)
    end)
  ]])
  World.wait_until('the agent has read it', function()
    return world:lua([[
      for _, data in ipairs(told) do if data.event.type == 'tool:end' then return true end end
      return false
    ]])
  end)
  World.write(world:path('a.txt'), 'one\ntwo\nthree\nfrom elsewhere\n')
  world:release('disk')
  world:wait_turns(1)
  local text = world:text('a.txt')
  assert(text:find('from elsewhere', 1, true), 'the change from elsewhere is lost: ' .. text)
  assert(World.read(world:path('a.txt')):find('from elsewhere', 1, true), 'it is lost on the disk')
end

tests['a file that others changed under unsaved changes is not overwritten'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({
    read('a.txt'),
    edit('a.txt', 'one', 'ONE'),
    call('Bash', { command = 'cat a.txt', description = 'Show it' }),
    say('Done.'),
  })
  world:start({ 'a.txt' })
  world:type('Gomine<Esc>')
  world:wait_text('one\nmine\n', 'a.txt')
  World.write(world:path('a.txt'), 'from elsewhere, and longer\n')
  run(world)
  equal(World.read(world:path('a.txt')), 'from elsewhere, and longer\n', 'the file')
  equal(world:lua('return vim.bo.modified'), true, 'modified')
end

tests['a document is saved before a command runs'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({
    read('a.txt'),
    edit('a.txt', 'one', 'ONE'),
    call('Bash', { command = 'cat a.txt', description = 'Show it' }),
    say('It says: {{last_result}}'),
  })
  world:start({ 'a.txt' })
  world:type('Gomine<Esc>')
  run(world)
  equal(World.read(world:path('a.txt')), 'ONE\nmine\n', 'the file')
  equal(world:lua('return vim.bo.modified'), false, 'modified')
end

return tests
