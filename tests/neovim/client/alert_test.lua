--- Alerts: the focus that a terminal reports, and its bell.
---
--- Rule: a real terminal, tmux, reports the focus and hears the bell.

local World = require('client.world')
local say = World.say

local tests = {}

tests['the bell of the terminal rings when a turn ends in a Neovim that is not in front'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  local settings = vim.json.encode({ notify = 'bell', notifyAfterSeconds = 0 })
  vim.fn.mkdir(world.folder .. '/.kode', 'p')
  World.write(world.folder .. '/.kode/settings.json', settings)
  world:serve({ say('Fine.'), say('Fine again.') })
  world:start_terminal({ 'a.txt' }, 100, 30)
  local rung = world.folder .. '/rung'
  world:tmux({ 'set-hook', '-g', 'alert-bell', ("run-shell 'echo bell >> %s'"):format(rung) })
  world:open()
  -- In front, which the terminal reports by these bytes, nothing rings.
  world:tmux({ 'send-keys', '-H', '1b', '5b', '49' })
  world:send('one')
  world:wait_turns(1)
  world:tmux({ 'send-keys', '-H', '1b', '5b', '4f' })
  world:send('two')
  world:wait_turns(2)
  World.wait_until('the bell rings', function()
    return vim.uv.fs_stat(rung) ~= nil
  end)
  World.equal(World.read(rung), 'bell\n', 'one bell')
end

return tests
