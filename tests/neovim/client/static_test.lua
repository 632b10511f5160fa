--- What can be said of the plugin's files without a server.
---
--- Rule: what is generated is fresh, what is documented is there, and what is there is documented.

local World = require('client.world')
local equal = World.equal

local tests = {}

local function lua_files()
  return vim.fs.find(function(name)
    return name:match('%.lua$') ~= nil
  end, { path = World.plugin, limit = math.huge })
end

tests['the types of the protocol are those of this repository'] = function()
  local generated = World.read(World.root .. '/protocol/generated/kode.lua')
  assert(
    World.read(World.plugin .. '/lua/kode/wire.lua') == generated,
    'stale: cp protocol/generated/kode.lua editors/neovim/lua/kode/wire.lua'
  )
end

tests['every file says what it is for and which rule holds there'] = function()
  for _, path in ipairs(lua_files()) do
    local head = World.read(path):match('^[^\n]*\n[^\n]*\n[^\n]*\n?[^\n]*')
    assert(
      vim.endswith(path, 'wire.lua') or (head:match('^%-%-%-') and head:find('Rule: ', 1, true)),
      path .. ' begins with ' .. head
    )
  end
end

tests['every module can be loaded'] = function(world)
  world:start({})
  for _, path in ipairs(lua_files()) do
    local module = path:match('/lua/(kode/.*)%.lua$')
    if module then
      equal(world:lua('return pcall(require, ...)', (module:gsub('/', '.'):gsub('%.init$', ''))), true, module)
    end
  end
end

tests['the help is well-formed and names every sub-command, setting, map and highlight group'] = function(world)
  world:start({})
  local help = World.read(World.plugin .. '/doc/kode.txt')
  local copy = world.folder .. '/doc'
  World.write(copy .. '/kode.txt', help)
  world:lua('vim.cmd.helptags({ args = { ... }, magic = { file = false } })', copy)
  local tags = {}
  for tag in World.read(copy .. '/tags'):gmatch('[^\n]+') do
    tags[tag:match('^[^\t]+')] = true
  end
  local function tagged(names, form)
    for _, name in ipairs(names) do
      assert(tags[form:format(name)], 'the help has no tag ' .. form:format(name))
    end
  end
  tagged(world:lua("return vim.tbl_keys(require('kode.command').commands)"), ':Kode-%s')
  local plugs = world:lua([[
    local plugs = {}
    for _, map in ipairs(vim.api.nvim_get_keymap('n')) do
      plugs[#plugs + 1] = map.lhs:match('^<Plug>%(kode%-.*')
    end
    return plugs
  ]])
  assert(#plugs > 10, 'there are maps')
  tagged(plugs, '%s')
  for _, name in ipairs(world:lua("return vim.tbl_keys(require('kode.config').defaults)")) do
    assert(help:find('\n%s+' .. name .. ' = '), 'the help has no setting ' .. name)
  end
  for _, name in ipairs(world:lua("return vim.tbl_keys(require('kode.highlight').groups)")) do
    assert(help:find(name .. '%f[%W]'), 'the help has no group ' .. name)
  end
  local bars = {}
  for link in help:gmatch('|([^|%s]+)|') do
    if vim.startswith(link, 'kode') or vim.startswith(link, ':Kode') then
      bars[link] = true
    end
  end
  tagged(vim.tbl_keys(bars), '%s')
  for number, line in ipairs(vim.split(help, '\n')) do
    assert(vim.api.nvim_strwidth(line) <= 78, ('line %d of the help is too long'):format(number))
  end
end

tests['the rockspec can be read and names what is there'] = function()
  local spec = {}
  local chunk = assert(loadfile(World.plugin .. '/kode-scm-1.rockspec'))
  setfenv(chunk, spec)()
  for _, folder in ipairs(spec.build.copy_directories) do
    assert(vim.uv.fs_stat(World.plugin .. '/' .. folder), folder)
  end
end

tests['highlight groups are defaults, and survive a color scheme'] = function(world)
  world:start({})
  world:lua("vim.api.nvim_set_hl(0, 'KodeTitle', { link = 'Comment' }); require('kode.highlight')")
  equal(world:lua("return vim.api.nvim_get_hl(0, { name = 'KodeTitle' }).link"), 'Comment', "the user's own")
  equal(world:lua("return vim.api.nvim_get_hl(0, { name = 'KodeRemoved' }).link"), 'Removed', 'the default')
  world:command('colorscheme habamax')
  World.wait_until('the group is there again', function()
    return world:lua("return vim.api.nvim_get_hl(0, { name = 'KodeRemoved' }).link") == 'Removed'
  end)
end

return tests
