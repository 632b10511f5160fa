--- Installing the plugin in the ways that its README shows, and doing without it as that of the repository does.
---
--- Rule: what is run is what stands in README.md, with the address of this copy in the place of the example's.

local World = require('client.world')
local equal, say = World.equal, World.say

local tests = {}

--- The Lua of README.md, that of the plugin or the one in another folder, that has this in it.
local function example(part, folder)
  for block in World.read((folder or World.plugin) .. '/README.md'):gmatch('\n```lua\n(.-)\n```') do
    if block:find(part, 1, true) then
      return block
    end
  end
  error('README.md shows no ' .. part)
end

--- A repository like ours that can be cloned.
local function repository(world)
  local folder = world.folder .. '/repository'
  vim.fn.mkdir(folder .. '/editors', 'p')
  local function run(command)
    local result = vim.system(command, { cwd = folder, text = true }):wait()
    assert(result.code == 0, result.stderr)
  end
  run({ 'cp', '-r', World.plugin, folder .. '/editors/neovim' })
  run({ 'git', 'init', '-q', '-b', 'main' })
  run({ 'git', 'add', '-A' })
  run({ 'git', '-c', 'user.name=a', '-c', 'user.email=a@example.org', 'commit', '-q', '-m', 'All of it' })
  return folder
end

--- Starts a Neovim that has nothing of the plugin but what this says.
local function start_with(world, init)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('An answer.') })
  world:start({ 'a.txt' })
  vim.fn.jobstop(world.nvim)
  local text = World.read(world.folder .. '/init.lua')
  local without, count = text:gsub('[^\n]*runtimepath:prepend[^\n]*\n', '', 1)
  equal(count, 1, 'the line that puts the plugin on the path')
  World.write(world.folder .. '/init.lua', without .. '\n' .. init)
  world:spawn({ 'a.txt' })
end

local function works(world)
  world:command('Kode send go')
  world:wait_turns(1)
  equal(world:lua("return vim.fn.exists(':Kode')"), 2, 'the command')
  world:command('help kode')
  world:wait_lua('the help is there', 'return vim.bo.buftype', 'help')
end

tests['without the plugin a turn is asked for, answered and made, with the demo model'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  local programs = world.folder .. '/programs'
  vim.fn.mkdir(programs)
  assert(vim.uv.fs_symlink(World.program, programs .. '/kode-ls'))
  local start = ("vim.env.PATH = %q .. ':' .. vim.env.PATH\n"):format(programs)
    .. 'function vim.ui.select(items, options, on_choice) question = { options.prompt, items, on_choice } end\n'
  World.write(world.folder .. '/init.lua', start .. example('vim.lsp.enable', vim.fs.dirname(vim.fs.dirname(World.plugin))))
  vim.fn.mkdir(world:path('.git'), 'p')
  world:spawn({ 'a.txt' })
  World.wait_until('the server is attached', function()
    return world:lua("return #vim.lsp.get_clients({ bufnr = 0, name = 'kode' }) == 1")
  end)
  world:command('Kode fix the greeting')
  World.wait_until('the user is asked', function()
    return world:lua('return question ~= nil')
  end)
  assert(world:lua('return question[1]'):find('+> fix the greeting', 1, true), world:lua('return question[1]'))
  world:lua([[
    for number, item in ipairs(question[2]) do
      if item.title == 'Allow once' then question[3](item, number) end
    end
  ]])
  World.wait_until('the file is written', function()
    return vim.uv.fs_stat(world:path('kode-demo.md')) ~= nil
  end)
end

tests['vim.pack installs it'] = function(world)
  world:start({})
  if not world:lua('return vim.pack ~= nil') then
    return 'this Neovim has no vim.pack (0.12)'
  end
  local source = repository(world)
  local init, count = example('vim.pack.add'):gsub("'/path/or/address/of/kode%-ls'", ("'file://%s'"):format(source))
  equal(count, 1, 'the address of the example')
  -- The question whether to install is answered beforehand.
  init, count = init:gsub('load = function', 'confirm = false, load = function')
  equal(count, 1, 'the function that loads it')
  start_with(world, init)
  works(world)
end

tests['the folder on the runtime path is all of it'] = function(world)
  start_with(world, ("vim.opt.runtimepath:prepend('%s/editors/neovim')"):format(repository(world)))
  world:command('helptags ALL')
  works(world)
end

tests['the modules may be elsewhere than on the runtime path, where LuaRocks puts them'] = function(world)
  local folder = repository(world) .. '/editors/neovim'
  local rock = world.folder .. '/rock'
  vim.fn.mkdir(rock)
  -- What the rockspec names goes into the rock, the modules beside those of all rocks.
  local spec = {}
  setfenv(assert(loadfile(folder .. '/kode-scm-1.rockspec')), spec)()
  for _, name in ipairs(spec.build.copy_directories) do
    assert(vim.uv.fs_rename(folder .. '/' .. name, rock .. '/' .. name))
  end
  start_with(
    world,
    ([[
      package.path = '%s/lua/?.lua;%s/lua/?/init.lua;' .. package.path
      vim.opt.runtimepath:prepend('%s')
    ]]):format(folder, folder, rock)
  )
  world:command('helptags ALL')
  works(world)
end

return tests
