--- Comments on lines: written, carried along, sent as one prompt, answered where they stand.
---
--- Rule: the text for the agent is read from the request that the model got.

local World = require('client.world')
local Scenes = require('client.scenes')
local equal, say = World.equal, World.say

local tests = {}

--- The drawn comments in a buffer: row and words.
local function drawn(world, name)
  return world:lua(
    [[
      local bufnr = vim.fn.bufnr(...)
      local list = {}
      local namespace = require('kode.highlight').comments
      for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(bufnr, namespace, 0, -1, { details = true })) do
        for _, line in ipairs(mark[4].virt_lines or {}) do table.insert(list, mark[2] .. line[1][1]) end
      end
      return list
    ]],
    name or 'a.txt'
  )
end

local function wait_drawn(world, expected, name)
  local seen
  local ok = pcall(World.wait_until, 'it is drawn', function()
    seen = drawn(world, name)
    return vim.deep_equal(seen, expected)
  end)
  assert(ok, ('drawn are %s; told was %s'):format(vim.inspect(seen), vim.inspect(world:lua('return notified'))))
end

tests['comments stand below their lines, go along with them, and are sent with the change they are on'] = function(world)
  Scenes.two_places(world, { keymaps = { review = true } })
  Scenes.wait_shown(world, { 1, 5 }, { '1 two', '5 six' })
  world:type('2G\\kc')
  world:wait_screen('Comment:')
  world:type('say it softly<CR>')
  wait_drawn(world, { '1  » say it softly' })
  world:command('6,7Kode comment and this too')
  wait_drawn(world, { '1  » say it softly', '6  » and this too' })
  world:wait_screen('» say it softly')
  world:shot('comments')
  -- The user types above: the comments stay at their lines.
  world:type('ggOabove<Esc>')
  wait_drawn(world, { '2  » say it softly', '7  » and this too' })
  world:command('Kode comments')
  world:wait_lua('the list is open', 'return vim.bo.buftype', 'quickfix')
  equal(
    world:lua('return vim.tbl_map(function(entry) return { entry.lnum, entry.text } end, vim.fn.getqflist())'),
    { { 3, 'say it softly' }, { 7, 'and this too' } },
    'the list'
  )
  world:command('cclose | Kode comments send Please look:')
  world:wait_turns(2)
  local request = world:newest_request()
  for _, part in ipairs({
    'Please look:',
    '1. a.txt:3\\n```diff\\n-two\\n+TWO\\n```\\nsay it softly',
    '2. a.txt:7-8\\n```diff\\n-six\\n+SIX\\n```\\nand this too',
    'answer each',
  }) do
    assert(request:find(part, 1, true), ('%s is not in %s'):format(part, request:sub(-3000)))
  end
  local nothing = '  « Not answered here: see the conversation for what came of it.'
  wait_drawn(world, { '2  » say it softly', '2' .. nothing, '7  » and this too', '7' .. nothing })
  world:command('Kode comments drop')
  wait_drawn(world, {})
end

--- A file with comments on two lines, and a model that answers the prompt.
local function two_comments(world, answer)
  World.write(world:path('a.txt'), 'one\ntwo\nthree\n')
  world:serve({ answer })
  world:start({ 'a.txt' })
  world:command('1Kode comment why one?')
  world:command('3Kode comment and three?')
  wait_drawn(world, { '0  » why one?', '2  » and three?' })
  world:command('Kode comments send')
end

tests['each comment is answered below its lines, and the next round takes answered ones away'] = function(world)
  local long = ('word '):rep(30)
  local answer = ('Done.\n\nComment 1: It was first.\n\n- **Comment 2** – It ends.\nComment 9 is %s'):format(long)
  two_comments(world, say(answer))
  wait_drawn(world, {
    '0  » why one?',
    '0  « It was first.',
    '2  » and three?',
    '2  « It ends.',
    '2  « Comment 9 is ' .. vim.trim(('word '):rep(15)),
    '2  « ' .. vim.trim(('word '):rep(15)),
  })
  world:type('ggOabove<Esc>')
  world:command('Kode comments')
  world:wait_told('no comments')
  world:type('2G')
  world:command('Kode comment say more')
  world:command('Kode comments send')
  world:wait_turns(2)
  -- There is no second comment any more: an answer belongs to the first.
  wait_drawn(world, {
    '1  » say more',
    '1  « It was first.',
    '1  « ',
    '1  « - **Comment 2** – It ends.',
    '1  « Comment 9 is ' .. vim.trim(('word '):rep(15)),
    '1  « ' .. vim.trim(('word '):rep(15)),
  })
end

tests['a comment that is written anew while its round is answered is one of the next round'] = function(world)
  local answer = say('Comment 1: Because.\nComment 2: So.')
  answer.gate = 'answer'
  two_comments(world, answer)
  world:command('1Kode comment why at all?')
  world:release('answer')
  wait_drawn(world, { '0  » why at all?', '2  » and three?', '2  « So.' })
end

tests['a comment is changed and taken away where it stands'] = function(world)
  World.write(world:path('a.txt'), 'one\ntwo\n')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:command('2Kode comment first words')
  wait_drawn(world, { '1  » first words' })
  world:type('2G')
  world:command('Kode comment other words')
  wait_drawn(world, { '1  » other words' })
  world:command('Kode comment')
  world:wait_screen('Comment: other words')
  world:type('<C-u><CR>')
  wait_drawn(world, {})
  world:command('Kode comments send')
  world:wait_told('no comments')
end

tests['a comment outlives its buffer, and one that was not sent is in the draft'] = function(world)
  World.write(world:path('a.txt'), 'one\ntwo\n')
  World.write(world:path('b.txt'), 'other\n')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:command('2Kode comment why two?')
  wait_drawn(world, { '1  » why two?' })
  world:type('ggOabove<Esc>')
  wait_drawn(world, { '2  » why two?' })
  world:command('write | edit b.txt | bdelete a.txt | edit a.txt')
  wait_drawn(world, { '2  » why two?' })
  world:command('quitall!')
  World.wait_until('it has ended', function()
    return vim.fn.jobwait({ world.nvim }, 0)[1] ~= -1
  end)
  world:start({ 'a.txt' })
  world:command('Kode resume')
  world:wait_lua('the conversation is open', 'return vim.bo.filetype', 'kodeprompt')
  world:wait_text('My comments on your changes:\n\n1. a.txt:3\nwhy two?\n')
end

tests['only lines of files are commented on'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:open()
  world:command('Kode comment here')
  world:wait_told('comments need a buffer with a file')
end

return tests
