--- Tools that a plugin of Neovim offers to the model.
---
--- Rule: the result is read from what the model got.

local World = require('client.world')
local call, say = World.call, World.say

local tests = {}

--- A Neovim in which a plugin has registered a tool before the first prompt.
local function with_tool(world, run)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ call('mcp__my_plugin__word_at', { line = 1 }), say('I have it.') })
  world:start({ 'a.txt' })
  world:lua(([[
    require('kode').tools('my.plugin', { {
      name = 'word_at',
      description = 'The first word of a line of the current buffer.',
      input_schema = { type = 'object', properties = { line = { type = 'integer' } }, required = { 'line' } },
      run = %s,
    } })
  ]]):format(run))
  world:open()
  world:send('which word')
end

local function allow(world)
  world:wait_asked()
  world:lua([[
    local prompt = require('kode').session().permissions[1]
    require('kode.surface').current():respond(prompt, { decision = 'allow' })
  ]])
end

tests['a tool of a plugin runs after it was allowed, and the model gets its answer'] = function(world)
  with_tool(world, [[function(arguments, done)
    local text = vim.api.nvim_buf_get_lines(vim.fn.bufnr('a.txt'), arguments.line - 1, arguments.line, true)[1]
    vim.defer_fn(function() done('the word is ' .. text:match('%w+')) end, 20)
  end]])
  allow(world)
  world:wait_turns(1)
  assert(world:newest_request():find('the word is one', 1, true), world:newest_request())
end

tests['a tool of a plugin that raises an error fails its call alone'] = function(world)
  with_tool(world, "function() error('no word here') end")
  allow(world)
  world:wait_turns(1)
  assert(world:newest_request():find('no word here', 1, true), world:newest_request())
  world:wait_transcript('I have it.')
end

tests['a call that is stopped is cancelled in the plugin'] = function(world)
  with_tool(world, [[function()
    vim.g.started = true
    return function() vim.g.cancelled = true end
  end]])
  allow(world)
  world:wait_lua('it runs', 'return vim.g.started', true)
  world:command('Kode stop')
  world:wait_lua('it is cancelled', 'return vim.g.cancelled', true)
end

return tests
