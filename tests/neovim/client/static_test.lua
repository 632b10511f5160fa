--- Static properties of the plugin's files.
---
--- Rule: generated files are fresh, documented items exist, and existing items are documented.

local World = require('client.world')
local equal = World.equal

local tests = {}

local function lua_files()
  return vim.fs.find(function(name)
    return name:match('%.lua$') ~= nil
  end, { path = World.plugin, limit = math.huge })
end

--- Whether a file has only annotations: language servers read it, and Neovim never loads it.
local function is_meta(path)
  return vim.startswith(World.read(path), '---@meta')
end

tests['the module that is loaded has the hash of the schema'] = function(world)
  world:start({})
  local hash = vim.trim(World.read(World.root .. '/protocol/generated/schema.hash'))
  equal(world:lua("return require('kode.wire').schema_hash"), hash)
end

tests['the types of the protocol are never loaded'] = function(world)
  world:start({})
  assert(is_meta(World.plugin .. '/lua/kode/types.lua'), 'the types are annotations')
  for _, path in ipairs(lua_files()) do
    assert(not World.read(path):find("require%(?'kode%.types'"), path .. ' loads the types')
  end
end

tests['every file says what it is for and which rule holds there'] = function()
  for _, path in ipairs(lua_files()) do
    local head = World.read(path):match('^[^\n]*\n[^\n]*\n[^\n]*\n?[^\n]*')
    assert(
      is_meta(path) or (head:match('^%-%-%-') and head:find('Rule: ', 1, true)),
      path .. ' begins with ' .. head
    )
  end
end

tests['every module can be loaded'] = function(world)
  world:start({})
  for _, path in ipairs(lua_files()) do
    local module = path:match('/lua/(kode/.*)%.lua$')
    if module and not is_meta(path) then
      equal(world:lua('return pcall(require, ...)', (module:gsub('/', '.'):gsub('%.init$', ''))), true, module)
    end
  end
end

local help = World.read(World.plugin .. '/doc/kode.txt')

--- The tags of the help, as Neovim finds them.
local function tags_of(world)
  local copy = world.folder .. '/doc'
  World.write(copy .. '/kode.txt', help)
  world:lua('vim.cmd.helptags({ args = { ... }, magic = { file = false } })', copy)
  local tags = {}
  for tag in World.read(copy .. '/tags'):gmatch('[^\n]+') do
    tags[tag:match('^[^\t]+')] = true
  end
  return tags
end

--- Fails unless the tags of a form are exactly those that the names have.
local function same(tags, names, form)
  local wanted = {}
  for _, name in ipairs(names) do
    wanted[form:format(name)] = true
    assert(tags[form:format(name)], 'the help has no tag ' .. form:format(name))
  end
  local before, after = form:match('^(.*)%%s(.*)$')
  for tag in pairs(tags) do
    local is_of_form = vim.startswith(tag, before) and vim.endswith(tag, after)
    assert(wanted[tag] or not is_of_form, 'the help has a tag of something that is not there: ' .. tag)
  end
end

tests['the help is well-formed, and its links lead somewhere'] = function(world)
  world:start({})
  local tags = tags_of(world)
  for link in help:gmatch('|([^|%s]+)|') do
    if link:find('[Kk]ode') then
      assert(tags[link], 'nowhere leads ' .. link)
    end
  end
  for number, line in ipairs(vim.split(help, '\n')) do
    assert(vim.api.nvim_strwidth(line) <= 78, ('line %d of the help is too long'):format(number))
  end
end

tests['the help has every sub-command, map and function, and none that is not there'] = function(world)
  world:start({})
  local tags = tags_of(world)
  same(tags, world:lua("return vim.tbl_keys(require('kode.command').commands)"), ':Kode-%s')
  same(tags, world:lua("return vim.tbl_keys(require('kode'))"), 'kode.%s()')
  local plugs = world:lua([[
    local plugs = {}
    for _, map in ipairs(vim.api.nvim_get_keymap('n')) do
      plugs[#plugs + 1] = map.lhs:match('^<Plug>%(kode%-(.*)%)$')
    end
    return plugs
  ]])
  assert(#plugs > 10, 'there are maps')
  same(tags, plugs, '<Plug>(kode-%s)')
  for kind, keys in pairs(world:lua([[
    return vim.tbl_map(function(maps)
      return vim.iter(maps):map(function(map) return map.keys end):flatten():totable()
    end, require('kode.maps').tables)
  ]])) do
    local section = help:match('%*kode%-maps%-' .. kind .. '%*(.-)\n\n[^ ]')
    for _, key in ipairs(keys) do
      assert(section:find('%f[^%s]' .. vim.pesc(key) .. '%f[%s]'), ('the help has no key %s of the %s'):format(key, kind))
    end
  end
end

tests['the help has every setting with its default, and every highlight group'] = function(world)
  world:start({})
  local function check(defaults, section)
    for name, value in pairs(defaults) do
      local shown = section:match('\n%s+' .. name .. ' = ([^\n]*)')
      assert(shown, 'the help has no setting ' .. name)
      if type(value) == 'table' and not vim.islist(value) then
        check(value, section)
      else
        local text = vim.inspect(value):gsub('"', "'")
        assert(vim.startswith(shown, text .. ','), ('the help has %s for %s, which is %s'):format(shown, name, text))
      end
    end
  end
  check(world:lua("return require('kode.config').defaults"), help:match('%*kode%-settings%*(.-)\n<'))
  local listed = {}
  for name in help:match('%*kode%-highlights%*(.-)\n==='):gmatch('Kode%u%w+') do
    listed[#listed + 1] = name
  end
  local groups = world:lua("return vim.tbl_keys(require('kode.highlight').groups)")
  table.sort(listed)
  table.sort(groups)
  equal(listed, groups, 'the highlight groups')
end

--- The fields of each type of event, as the types of the protocol have them.
local function payloads()
  local wire = World.read(World.plugin .. '/lua/kode/types.lua')
  local found = {}
  for base, type in wire:gmatch('%-%-%-@class kode%.Event%.%w+: kode%.(%w+)\n%-%-%-@field type "([^"]+)"') do
    local fields = wire:match('%-%-%-@class kode%.' .. base .. '\n(.-)\n\n') or ''
    found[type] = {}
    for name in fields:gmatch('%-%-%-@field (%w+%??)') do
      table.insert(found[type], name)
    end
  end
  return found
end

tests['the help has every event with its payload'] = function(world)
  world:start({})
  local tags = tags_of(world)
  local count = 0
  for type, fields in pairs(payloads()) do
    count = count + 1
    local name = world:lua("return require('kode.events').name(...)", type)
    assert(tags[name], 'the help has no tag ' .. name)
    -- An entry ends where the next one begins, or with an empty line.
    local entry = help:match('%*' .. name .. '%*\n(.-\n)%s*%*Kode') or ''
    entry = entry:match('^(.-\n)\n') or entry
    local told = {}
    for field in entry:gmatch('`([%w_?]+)`') do
      told[#told + 1] = field
    end
    equal(told, fields, 'the fields of ' .. name)
  end
  assert(count > 40, 'the types of events are found')
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
