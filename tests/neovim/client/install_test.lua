--- Installing the plugin in the ways that its README shows, and without it.
---
--- Rule: the tests run what README.md shows, with the address of this copy in the place of the example's.

local World = require('client.world')
local equal, say = World.equal, World.say

local tests = {}

--- The Lua of README.md that has this in it.
local function example(part)
  for block in World.read(World.plugin .. '/README.md'):gmatch('\n```lua\n(.-)\n```') do
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
  World.write(world.folder .. '/init.lua', start .. example('vim.lsp.enable'))
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

--- Git needs to know who commits, whatever the machine has.
local identity = { NEOVIM = vim.v.progpath }
for _, role in ipairs({ 'AUTHOR', 'COMMITTER' }) do
  identity[('GIT_%s_NAME'):format(role)], identity[('GIT_%s_EMAIL'):format(role)] = 'a', 'a@example.org'
end

--- The mirror of the plugin as a repository of its own, made from the state that is committed.
local function mirror(world)
  local folder = world.folder .. '/kode.nvim'
  local result = vim
    .system({ World.plugin .. '/mirror', folder }, { text = true, env = identity })
    :wait()
  assert(result.code == 0, result.stderr .. result.stdout)
  return folder
end

tests['vim.pack installs the mirror by its address alone'] = function(world)
  world:start({})
  if not world:lua('return vim.pack ~= nil') then
    return 'this Neovim has no vim.pack (0.12)'
  end
  local address = "'https://github.com/kode-ls/kode.nvim'"
  -- The question whether to install is answered beforehand.
  local source = ("'file://%s'"):format(mirror(world))
  local init, count = example('vim.pack.add'):gsub(vim.pesc(address) .. ' }', source .. ' }, { confirm = false }')
  equal(count, 1, 'the address of the example')
  start_with(world, init)
  works(world)
end

tests['lazy.nvim installs the mirror as a plugin of one line, by its newest version'] = function(world)
  local lazy = vim.env.KODE_LS_NEOVIM_PLUGINS and vim.env.KODE_LS_NEOVIM_PLUGINS .. '/lazy.nvim'
  if not lazy or not vim.uv.fs_stat(lazy) then
    return 'lazy.nvim is not in the folder KODE_LS_NEOVIM_PLUGINS'
  end
  local spec, count = example('lazy = false'):gsub("'kode%-ls/kode.nvim'", ("url = 'file://%s', version = '*'"):format(mirror(world)))
  equal(count, 1, 'the name of the example')
  start_with(world, ([[
    vim.opt.runtimepath:prepend(%q)
    require('lazy').setup({ %s }, { root = %q, install = { missing = true }, rocks = { enabled = false } })
  ]]):format(lazy, spec, world.folder .. '/lazy'))
  works(world)
end

tests['the mirror is tagged by the version, and made again only for what has changed'] = function(world)
  local folder = mirror(world)
  local function git(...)
    return vim.trim(vim.system({ 'git', '-C', folder, ... }, { text = true }):wait().stdout)
  end
  local version = World.read(World.root .. '/Cargo.toml'):match('%[workspace.package%]\nversion = "(.-)"')
  equal(git('tag'), 'v' .. version, 'the tags')
  mirror(world)
  equal(git('rev-list', '--count', 'HEAD'), '1', 'the commits')
  assert(vim.uv.fs_stat(folder .. '/LICENSE-MIT') and vim.uv.fs_stat(folder .. '/plugin/kode.lua'), 'it has the plugin at its root')
end

tests['the entries for registries fit the plugin and its packages'] = function(world)
  local packaging = World.root .. '/editors/packaging'
  local own = World.read(World.plugin .. '/lsp/kode.lua'):match('local config = (%b{})')
  local entry = World.read(packaging .. '/nvim-lspconfig/lsp/kode_ls.lua'):match('\nreturn (%b{})')
  local function value(text)
    return assert(loadstring('return ' .. text))()
  end
  equal(value(entry), value(own), 'the configuration')
  local mason = World.read(packaging .. '/mason/package.yaml')
  local version = World.read(World.root .. '/Cargo.toml'):match('%[workspace.package%]\nversion = "(.-)"')
  assert(mason:find('kode%-ls/kode%-ls@v' .. vim.pesc(version)), 'the version of the entry')
  local release = World.read(World.root .. '/server/release')
  assert(release:find('name=kode-ls-$version-$triple', 1, true), 'the name of the archive')
  for host in mason:gmatch('file: kode%-ls%-{{ version | strip_prefix "v" }}%-([%w_-]+)%.tar%.gz') do
    assert(mason:find(('bin: kode-ls-{{ version | strip_prefix "v" }}-%s/kode-ls'):format(host), 1, true), host)
  end
  world.jobs = {}
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
  -- The files of the rockspec go into the rock, the modules beside those of all rocks.
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
