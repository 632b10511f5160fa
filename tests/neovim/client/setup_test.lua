-- Setting up a model from Neovim, limits of providers, and single tools of MCP servers.
--
-- Rule: the lists and fields are Neovim's own, in a terminal, and are answered by keys.

local World = require('client.world')

local equal = World.equal

local tests = {}

local function say(words)
  return { content = { { type = 'text', text = words } } }
end

--- Types the number of an entry of the list that waits for one.
local function pick(world, entry)
  local screen = world:wait_terminal(entry, 'Type number')
  local number = assert(screen:match('(%d+): ' .. vim.pesc(entry)), screen)
  world:type(number .. '<CR>')
end

tests['a model is set up by keys: a refused trial says why, and the key is kept in a file alone'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Ready.') })
  world.env.ANTHROPIC_BASE_URL, world.env.ANTHROPIC_API_KEY = nil, nil
  world:start_terminal({ 'a.txt' }, 110, 60)
  world:lua("vim.cmd.runtime('plugin/kode.lua')")
  world:open()
  world:wait_transcript(':Kode setup')
  world:command('Kode setup')
  pick(world, "A server that is compatible with OpenAI's")
  world:wait_terminal('Address (for example')
  world:type(world.model .. '/v1<CR>')
  pick(world, 'No key')
  world:wait_terminal('the server lists none')
  pick(world, 'Choose a model')
  world:wait_terminal('Model of A server')
  world:type('scripted<CR>')
  world:wait_terminal('did not answer', '401')
  pick(world, 'Enter the key again')
  pick(world, 'Enter a key')
  world:wait_terminal("Key of A server that is compatible with OpenAI's:")
  world:type('test-key<CR>')
  world:wait_lua('the session has the model', "return require('kode.surface').latest().session.model", 'openai-compatible')
  local settings = World.read(world.folder .. '/.kode/settings.json')
  assert(settings:find('fromFile', 1, true) and not settings:find('test-key', 1, true), settings)
  local messages = world:lua("return vim.fn.execute('messages') .. vim.fn.execute('history all') .. vim.inspect(notified)")
  assert(not messages:find('test-key', 1, true), messages)
  world:send('hello')
  world:wait_turns(1)
  world:wait_transcript('Ready.')
end

tests['a model that runs on this machine is chosen from the list of models, and answers'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Ready.') }, {
    pages = {
      ['/api/tags'] = { models = { { name = 'gemma-test:4b', model = 'gemma-test:4b' } } },
      ['/api/show'] = { capabilities = { 'completion', 'tools' }, model_info = { ['gemma3.context_length'] = 32768 } },
      ['/api/ps'] = { models = {} },
    },
  })
  world.env.OLLAMA_HOST = world.model:gsub('http://', '')
  world:start_terminal({ 'a.txt' }, 110, 60)
  world:lua("vim.cmd.runtime('plugin/kode.lua')")
  world:open()
  world:command('Kode model')
  pick(world, '  gemma-test:4b  (Ollama, 32768 tokens, on this machine)')
  world:wait_lua('the session has the model', "return require('kode.surface').latest().session.model", 'ollama')
  world:send('hello')
  world:wait_turns(1)
  world:wait_transcript('Ready.')
  world:command('Kode model')
  local screen = world:wait_terminal('ollama  gemma-test:4b, ollama', 'Type number')
  equal(screen:find('on this machine', 1, true), nil, 'the model that has a profile')
  world:type('<CR>')
end

tests['limits of the provider are drawn with their resets, and a tight one is in the winbar'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({
    {
      content = { { type = 'text', text = 'Fine.' } },
      headers = {
        ['anthropic-ratelimit-unified-5h-utilization'] = '0.92',
        ['anthropic-ratelimit-unified-5h-reset'] = tostring(os.time() + 7200),
        ['anthropic-ratelimit-unified-7d-utilization'] = '0.4',
        ['anthropic-ratelimit-unified-7d-reset'] = tostring(os.time() - 60),
      },
    },
  })
  world:start({ 'a.txt' })
  world:open()
  world:send('hello')
  world:wait_turns(1)
  world:wait_screen('5 hours 92% used')
  world:command('Kode usage')
  world:wait_screen('▮▮▮▮▮▮▮▮▮▯ 5 hours: 92 % used, new at')
  equal(world:screen():find('7 days', 1, true), nil, 'the limit that was reset')
end

tests['single tools of an MCP server are switched off and on again'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Fine.') })
  local server = vim.fs.joinpath(vim.fs.dirname(World.program), 'fault-mcp-server')
  local settings = world.folder .. '/.kode/settings.json'
  World.write(settings, vim.json.encode({ mcpServers = { fault = { command = server, sandbox = false } } }))
  world.env.KODE_LS_MCP_WAIT = '30000'
  world:start_terminal({ 'a.txt' }, 110, 60)
  world:lua("vim.cmd.runtime('plugin/kode.lua')")
  world:open()
  world:send('hello')
  world:wait_turns(1)
  local function switch(state)
    world:command('Kode mcp')
    pick(world, 'fault  connected')
    pick(world, 'Tools')
    pick(world, state .. ' fault:echo')
  end
  switch('on ')
  World.wait_until('the rule is written', function()
    return World.read(settings):find('"mcp__fault__echo"', 1, true) ~= nil
  end)
  switch('off')
  World.wait_until('the rule is removed', function()
    return World.read(settings):find('"mcp__fault__echo"', 1, true) == nil
  end)
end

return tests
