--- The plugin beside others: pickers, completion, statuslines, explorers.
---
--- Rule: the others are the real ones, as folders in the folder that KODE_LS_NEOVIM_PLUGINS names; a test without its plugins
--- is left out, and says which.

local World = require('client.world')
local equal, call, say = World.equal, World.call, World.say

local tests = {}

local folder = vim.env.KODE_LS_NEOVIM_PLUGINS

--- The folders of some plugins; nil and a text where one is missing.
local function find(names)
  local paths = {}
  for _, name in ipairs(names) do
    local path = folder and vim.fs.joinpath(folder, name)
    if not path or not vim.uv.fs_stat(path) then
      return nil, ('%s is not in the folder KODE_LS_NEOVIM_PLUGINS'):format(name)
    end
    paths[#paths + 1] = path
  end
  return paths
end

--- Adds a test that needs plugins: each gets its own line on the runtime path before `setup` runs.
local function with(names, title, setup, test)
  tests[title] = function(world)
    local paths, missing = find(names)
    if not paths then
      return missing
    end
    World.write(world:path('a.txt'), 'one\ntwo\nthree\n')
    world:configure({}, 120, 40)
    local init = World.read(world.folder .. '/init.lua')
    for _, path in ipairs(paths) do
      init = init .. ('vim.opt.runtimepath:append(%q)\n'):format(path)
    end
    World.write(world.folder .. '/init.lua', init .. setup)
    return test(world)
  end
end

local function asks(world)
  world:serve({ call('Bash', { command = 'make one && make two', description = 'Build' }), say('Built.') })
  world:spawn_terminal({ 'a.txt' }, 120, 40)
  world:command('Kode! build it')
  world:wait_asked()
end

local pickers = {
  snacks = { names = { 'snacks.nvim' }, setup = "require('snacks').setup({ picker = { enabled = true } })\n" },
  telescope = { names = { 'plenary.nvim', 'telescope.nvim' }, setup = "require('telescope').setup({})\n" },
  ['fzf-lua'] = { names = { 'fzf-lua' }, setup = "require('fzf-lua').setup({})\n", program = 'fzf' },
  ['mini.pick'] = { names = { 'mini.nvim' }, setup = "require('mini.pick').setup()\n" },
}

for name, picker in pairs(pickers) do
  with(picker.names, name .. ' shows the command that is approved beside the answers', picker.setup, function(world)
    if picker.program and vim.fn.executable(picker.program) == 0 then
      return picker.program .. ' is not installed'
    end
    asks(world)
    equal(world:lua("return require('kode.picker').backend()"), name, 'the picker')
    world:command('Kode permission')
    world:wait_terminal('Run `make one', '$ make one && make two', 'Deny', 'Allow once', 'Always allow everywhere')
    world:type('<CR>')
    world:wait_turns(1)
    equal(
      world:lua([[
        for _, data in ipairs(told) do
          if data.event.type == 'permission_decided' then return data.event.outcome end
        end
      ]]),
      'deny',
      'the answer of return'
    )
  end)

  with(picker.names, name .. ' lists conversations with a preview, and deletes one', picker.setup, function(world)
    if picker.program and vim.fn.executable(picker.program) == 0 then
      return picker.program .. ' is not installed'
    end
    world:serve({ say('An answer to be previewed.') })
    world:spawn_terminal({ 'a.txt' }, 120, 40)
    world:command('Kode! the only conversation')
    world:wait_turns(1)
    -- The confirmation of the deletion.
    world:lua('vim.ui.select = function(items, _, choose) choose(items[2], 2) end')
    world:command('Kode sessions')
    if name == 'mini.pick' then
      world:wait_terminal('the only conversation', '1 turn')
      world:type('<Tab>')
    end
    world:wait_terminal('An answer to be previewed.')
    world:type('<C-x>')
    world:wait_told('deleted the only conversation')
  end)
end

with({ 'lualine.nvim' }, 'lualine shows titles and states instead of ids', [[
  vim.o.laststatus = 2
  require('lualine').setup({
    options = { icons_enabled = false, theme = '16color' },
    extensions = { 'kode' },
    sections = { lualine_x = { 'kode' } },
    winbar = { lualine_c = { 'filename' } },
    inactive_winbar = { lualine_c = { 'filename' } },
    tabline = { lualine_a = { 'buffers' } },
  })
]], function(world)
  world:serve({ say('Fine.') })
  world:spawn_terminal({ 'a.txt' }, 120, 40)
  world:open()
  world:send('mend the greeting')
  world:wait_turns(1)
  local screen = world:wait_terminal('mend the greeting', 'ready', 'kode: ready')
  assert(not screen:find('ses_', 1, true), screen)
end)

--- The prompt with a completion plugin, in Insert mode.
local function completes(world, has)
  world:serve({ say('Fine.') })
  world:spawn_terminal({ 'a.txt' }, 120, 40)
  world:open()
  -- nvim-cmp takes the typed text in the same moment as it begins for the existing text.
  world:type('i')
  world:wait_terminal('-- INSERT --')
  world:type('/')
  local screen = world:wait_terminal(unpack(has))
  for _, name in ipairs({ 'bin', 'boot', 'etc', 'usr' }) do
    assert(not screen:find('%f[%w]' .. name .. '/?%f[%W]'), ('the disk is listed (%s):\n%s'):format(name, screen))
  end
  world:type('<Esc>cc@a.t')
  world:wait_terminal('a.txt')
end

with({ 'blink.cmp' }, 'blink.cmp with its default sources offers commands with descriptions, and no files of the disk', [[
  require('blink.cmp').setup({ fuzzy = { implementation = 'lua' }, completion = { menu = { auto_show = true } } })
]], function(world)
  completes(world, { '/compact', 'Replaces the conversation' })
end)

with({ 'nvim-cmp', 'cmp-nvim-lsp' }, 'nvim-cmp offers commands with descriptions', [[
  vim.cmd.runtime('after/plugin/cmp_nvim_lsp.lua')
  require('cmp').setup({ sources = { { name = 'nvim_lsp' } }, snippet = { expand = function() end } })
]], function(world)
  completes(world, { '/compact' })
end)

with({ 'mini.nvim' }, 'mini.completion offers names', "require('mini.completion').setup()\n", function(world)
  completes(world, { '/compact' })
end)

--- Attaches the entry under the cursor of an explorer.
local function attaches(world, open, line)
  world:serve({ say('Fine.') })
  world:spawn_terminal({ 'a.txt' }, 120, 40)
  world:lua(open)
  world:wait_lua('the entry is listed', ([[
    vim.wait(50)
    return vim.fn.search(%q, 'w') > 0
  ]]):format(line or 'a.txt'), true)
  world:command('Kode attach')
  world:wait_told('attached a.txt')
end

with({ 'oil.nvim' }, 'an entry of oil is attached', "require('oil').setup({})\n", function(world)
  attaches(world, "require('oil').open(vim.fn.getcwd())")
end)

with({ 'plenary.nvim', 'nui.nvim', 'neo-tree.nvim' }, 'an entry of neo-tree is attached', [[
  require('neo-tree').setup({ enable_git_status = false })
]], function(world)
  attaches(world, "vim.cmd('Neotree filesystem reveal=false')")
end)

with({ 'mini.nvim' }, 'an entry of mini.files is attached', "require('mini.files').setup()\n", function(world)
  attaches(world, 'MiniFiles.open(vim.fn.getcwd())')
end)

tests['an entry of netrw is attached'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:configure({}, 120, 40)
  attaches(world, 'vim.cmd.Explore(vim.fn.getcwd())')
end

with({ 'render-markdown.nvim' }, 'render-markdown draws a finished message', [[
  require('render-markdown').setup({ file_types = { 'markdown', 'kode' }, completions = { lsp = { enabled = false } } })
]], function(world)
  world:serve({ say('# A heading of its own\n\n- [ ] a box') })
  world:spawn_terminal({ 'a.txt' }, 120, 40)
  world:open()
  world:send('show me')
  world:wait_turns(1)
  world:wait_transcript('a box')
  world:wait_lua('it has drawn', [[
    local transcript = require('kode.surface').latest().transcript
    for name, namespace in pairs(vim.api.nvim_get_namespaces()) do
      if name:match('render%-markdown') and #vim.api.nvim_buf_get_extmarks(transcript.buffer, namespace, 0, -1, {}) > 0 then
        return true
      end
    end
    return false
  ]], true)
end)

return tests
