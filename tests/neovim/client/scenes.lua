--- Situations that several files of tests begin with.
---
--- Rule: a scene is reached as a person reaches it, and checked as extmarks and text.

local World = require('client.world')
local call, say = World.call, World.say

local Scenes = {}

--- The text of `a.txt` before the agent has changed it.
Scenes.TEXT = 'one\ntwo\nthree\nfour\nfive\nsix\nseven\n'

--- A project whose agent has changed two places of a file, unasked.
function Scenes.two_places(world, settings)
  World.write(world:path('a.txt'), Scenes.TEXT)
  world:serve({
    call('Read', { file_path = '{{cwd}}/a.txt' }),
    call('MultiEdit', {
      file_path = '{{cwd}}/a.txt',
      edits = { { old_string = 'two', new_string = 'TWO' }, { old_string = 'six', new_string = 'SIX' } },
    }),
    say('Edited.'),
  })
  world:start({ 'a.txt' }, settings)
  world:lua([[
    require('kode.surface').with(function(surface)
      surface:ask('agent/session/configure', { mode = 'acceptEdits' }, function() surface:send('go') end)
    end)
  ]])
  world:wait_turns(1)
  world:wait_text('one\nTWO\nthree\nfour\nfive\nSIX\nseven\n', 'a.txt')
end

--- The rows that have a sign, and the removed lines that are shown, as the current buffer has them.
function Scenes.shown(world)
  return world:lua([[
    local signs, removed = {}, {}
    local marks = vim.api.nvim_buf_get_extmarks(0, require('kode.highlight').review, 0, -1, { details = true })
    for _, mark in ipairs(marks) do
      local details = mark[4]
      if details.sign_text then table.insert(signs, mark[2]) end
      for _, line in ipairs(details.virt_lines or {}) do table.insert(removed, mark[2] .. ' ' .. line[1][1]) end
    end
    return { signs, removed }
  ]])
end

function Scenes.wait_shown(world, signs, removed)
  local seen
  local ok = pcall(World.wait_until, 'it is shown', function()
    seen = Scenes.shown(world)
    return vim.deep_equal(seen, { signs, removed })
  end)
  if not ok then
    error(('shown are %s; told was %s'):format(vim.inspect(seen), vim.inspect(world:lua('return notified'))), 2)
  end
end

return Scenes
