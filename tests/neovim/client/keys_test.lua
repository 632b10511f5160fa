--- Reaching what waits, from every window and layout, and the keys of the settings.
---
--- Rule: everything is done by keys and commands, as a person does it.

local World = require('client.world')
local equal, call, say = World.equal, World.call, World.say

local tests = {}

local waiting = "return require('kode').waiting()"

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
  world:wait_transcript('1  Deny')
end

local function decision(world)
  return world:lua([[
    for _, data in ipairs(told) do
      if data.event.type == 'permission_decided' then return data.event.outcome end
    end
  ]])
end

for _, layout in ipairs({ 'split', 'float', 'tab', 'current' }) do
  tests['what waits is reached from the prompt in the layout ' .. layout] = function(world)
    a_change(world, { layout = layout })
    world:type(']p')
    world:wait_lua('the cursor is on the prompt', 'return vim.bo.filetype', 'kode')
    world:type('2')
    world:wait_turns(1)
    world:wait_text('one\nTWO\nthree\n', 'a.txt')
  end
end

tests['a prompt says how what waits is answered'] = function(world)
  a_change(world)
  local screen = world:screen()
  local _, hints = screen:gsub('%]p, then a number', '')
  equal(hints, 2, 'the hints in both windows')
end

tests['window keys of a float stay in the conversation'] = function(world)
  a_change(world, { layout = 'float' })
  local filetype = 'return vim.bo.filetype'
  world:type('<C-w>k')
  world:wait_lua('the cursor is in the transcript', filetype, 'kode')
  world:type('<C-w>j')
  world:wait_lua('the cursor is in the prompt', filetype, 'kodeprompt')
  world:type('<Tab>')
  world:wait_lua('the cursor is in the transcript again', filetype, 'kode')
  world:type('i<Esc>')
  world:wait_lua('the cursor is in the prompt again', filetype, 'kodeprompt')
end

tests['one key allows or denies from the prompt'] = function(world)
  a_change(world)
  world:type('ga')
  world:wait_turns(1)
  equal(decision(world), 'allow', 'the decision')
end

tests['one key denies with a reason'] = function(world)
  a_change(world)
  world:lua([[vim.ui.input = function(_, done) done('use three instead') end]])
  world:type('gw')
  world:wait_turns(1)
  equal(decision(world), 'deny', 'the decision')
end

tests['a key that answers is refused while the prompt has just appeared'] = function(world)
  a_change(world, { settle = 100000 })
  world:type('ga')
  world:wait_told('press the key again')
  equal(world:lua(waiting), 1, 'the prompts')
end

tests['a command that answers shows a prompt that no window shows first'] = function(world)
  a_change(world)
  world:type('q')
  world:wait_lua('the windows are closed', 'return #vim.api.nvim_list_wins()', 1)
  world:use_picker()
  world:command('Kode allow')
  equal(world:answer('Deny'), 'Edit a.txt?', 'the prompt that is shown')
  world:wait_turns(1)
  equal(decision(world), 'deny', 'the decision')
end

tests['a command denies with its words'] = function(world)
  a_change(world)
  world:command('Kode deny leave it')
  world:wait_turns(1)
  equal(decision(world), 'deny', 'the decision')
end

tests['return on an answer gives it, and on the change opens it as a diff'] = function(world)
  a_change(world)
  world:type('<C-w>k]p/@@<CR><CR>')
  world:wait_lua('the diff is open', 'return vim.wo.diff', true)
  world:command('tabclose')
  world:wait_lua('the transcript is there', 'return vim.bo.filetype', 'kode')
  world:type(']p/Deny<CR><CR>')
  world:wait_turns(1)
  equal(decision(world), 'deny', 'the decision')
end

tests['keys of all buffers are set in the settings'] = function(world)
  a_change(world, {
    keymaps = { prompt = { allow = '<Leader>y', deny = false }, transcript = { toggle = { 'za', '<Tab>' } }, review = true },
  })
  local function lhs(mode, description)
    return world:lua(
      [[
        local mode, description = ...
        local keys = {}
        for _, map in ipairs(vim.api.nvim_buf_get_keymap(0, mode)) do
          if map.desc == 'Kode: ' .. description then table.insert(keys, map.lhs) end
        end
        table.sort(keys)
        return keys
      ]],
      mode,
      description
    )
  end
  equal(lhs('n', 'allow the oldest prompt once'), { '\\y' }, 'the key of the settings')
  equal(lhs('n', 'deny the oldest prompt'), {}, 'the keys of what was switched off')
  world:type('<C-w>k')
  world:wait_lua('the cursor is in the transcript', 'return vim.bo.filetype', 'kode')
  equal(lhs('n', 'open or close the card'), { '<Tab>', 'za' }, 'the keys of a list')
  for given, problem in pairs({
    ['{ prompt = { alow = "y" } }'] = 'kode: keymaps.prompt.alow is unknown; see :help kode-maps-prompt',
    ['{ prompt = { allow = 3 } }'] = 'kode: keymaps.prompt.allow must be a key, a list of keys, or false',
    ['true'] = 'kode: keymaps must be a table with transcript, prompt and review, not a boolean',
  }) do
    local said = world:lua(
      'local ok, problem = pcall(require("kode").setup, { keymaps = loadstring("return " .. ...)() }); return problem',
      given
    )
    equal(said, problem, 'the problem')
  end
end

tests['every map of the plugin has a description of its own'] = function(world)
  a_change(world, { keymaps = { review = true } })
  world:type('ga')
  world:wait_turns(1)
  for _, name in ipairs({ 'prompt', 'kode', 'a.txt' }) do
    world:lua(
      [[
        local name = ...
        local surface = require('kode.surface').latest()
        local windows = require('kode.layout').view()
        vim.api.nvim_set_current_win(name == 'prompt' and windows.prompt or name == 'kode' and windows.transcript
          or require('kode.context').window())
      ]],
      name
    )
    local seen
    -- The maps of a file come with its first hunk.
    World.wait_until(name .. ' has maps', function()
      seen = world:lua([[
      local seen = {}
      for _, map in ipairs(vim.api.nvim_buf_get_keymap(0, 'n')) do
        if map.desc and map.desc:match('^Kode: ') then
          local keys = seen[map.desc] or {}
          table.insert(keys, map.lhs)
          seen[map.desc] = keys
        end
      end
      return seen
      ]])
      return next(seen)
    end)
    for description, keys in pairs(seen) do
      -- The nine numbers and the keys of one map share one.
      assert(#keys <= 2 or description:find('under the cursor'), description .. ': ' .. table.concat(keys, ' '))
    end
  end
end

tests['the next mode is a key of the prompt'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:open()
  local mode = "return require('kode').session().mode"
  for _, expected in ipairs({ 'acceptEdits', 'plan', 'default' }) do
    world:type('<S-Tab>')
    world:wait_lua('the mode is ' .. expected, mode, expected)
  end
end

tests['the conversation opens where one can type, and typing is no command'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' }, { start_insert = true })
  world:command('Kode')
  world:wait_lua('the prompt is open', 'return vim.bo.filetype', 'kodeprompt')
  World.wait_until('Insert mode has begun', function()
    return world:mode() == 'i'
  end)
  world:type('dd is what I say')
  world:type('<C-s>')
  world:wait_turns(1)
  world:wait_transcript('## You\ndd is what I say')
end

tests['a prompt that was sent comes back with the unsent one behind it'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:open()
  world:send('first prompt')
  world:wait_turns(1)
  world:type('iunsent words<Esc>[[')
  world:wait_text('first prompt\n')
  world:type(']]')
  world:wait_text('unsent words\n')
end

return tests
