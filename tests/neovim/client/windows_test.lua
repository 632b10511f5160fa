--- Two Neovims on one session: one writes it, the other follows.
---
--- Rule: every act is a key in one window, and its effect is checked in the other.

local World = require('client.world')
local equal, call, say = World.equal, World.call, World.say

local tests = {}

--- Waits until the transcript shows no prompt.
local function wait_closed(window)
  window:wait_lua('nothing waits', "return require('kode').waiting()", 0)
  World.wait_until('no answers are shown', function()
    return not window:transcript():find('2  Allow once', 1, true)
  end)
end

--- A second Neovim on the same project and the same sessions.
local function another(world)
  local other = setmetatable({ folder = world.folder, jobs = {}, env = world.env }, World)
  other:start({ 'a.txt' })
  vim.list_extend(world.jobs, other.jobs)
  return other
end

--- The outcomes of the prompts in the events of a window.
local outcomes = [[
  local outcomes = {}
  for _, data in ipairs(told) do
    if data.event.type == 'permission_decided' then table.insert(outcomes, data.event.outcome) end
  end
  return outcomes
]]

--- Two windows with one conversation, of which the first has asked for a command.
local function two_asked(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({
    { when = '^hello', steps = { say('Hello.') } },
    { steps = { call('Bash', { command = 'touch made-it', description = 'Make it' }), say('Made.') } },
  })
  world:start({ 'a.txt' })
  world:open()
  world:send('hello')
  world:wait_turns(1)
  local other = another(world)
  other:command('Kode resume')
  other:wait_transcript('Hello.')
  world:send('make it')
  world:wait_asked()
  return other
end

tests['a prompt of a session that is followed is shown, and answered by a number'] = function(world)
  local other = two_asked(world)
  other:wait_screen('waits for you (1)')
  other:wait_transcript('2  Allow once')
  other:type(']p')
  other:wait_lua('it takes keys', "return require('kode.surface').latest().transcript:is_settled()", true)
  other:type('2')
  world:wait_turns(2)
  equal(vim.fn.filereadable(world:path('made-it')), 1, 'the command ran')
  for _, window in ipairs({ world, other }) do
    window:wait_lua('the answer is told', outcomes, { 'allow' })
    wait_closed(window)
  end
end

tests['a prompt that is answered where it was asked is gone where it was followed'] = function(world)
  local other = two_asked(world)
  other:wait_transcript('2  Allow once')
  world:command('Kode deny')
  other:wait_lua('the answer is told', outcomes, { 'deny' })
  wait_closed(other)
end

return tests
