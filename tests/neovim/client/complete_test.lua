--- Completion in the prompt.
---
--- Rule: the completions come from the server; Neovim's own menu and the plugins are given the same.

local World = require('client.world')
local equal, say = World.equal, World.say

local tests = {}

local function a_prompt(world)
  World.write(world:path('a.txt'), 'one\n')
  World.write(world:path('src/interesting.lua'), 'return 1\n')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:open()
end

--- The completions of a plugin at the cursor.
local function asked_as_plugins_do(world)
  return world:lua([[
    local client = assert(vim.lsp.get_clients({ bufnr = 0, method = 'textDocument/completion' })[1])
    local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
    local response = assert(client:request_sync('textDocument/completion', params, 5000, 0))
    return { client.name, response.result, client.server_capabilities.completionProvider.triggerCharacters }
  ]])
end

tests['completion plugins are given names and commands as LSP has them'] = function(world)
  a_prompt(world)
  -- The text before the place has more bytes than characters.
  world:type('iüber allem<CR>look ö @inter')
  world:wait_text('über allem\nlook ö @inter\n')
  local name, list, triggers = unpack(asked_as_plugins_do(world))
  equal(name, 'kode-prompt', 'who is asked')
  equal(triggers, { '@', '/', '#' }, 'what begins it')
  local item = list.items[1]
  equal(item.textEdit.newText:match('@src/interesting.lua'), '@src/interesting.lua', 'what is put in')
  equal(item.textEdit.range, {
    start = { line = 1, character = 8 },
    ['end'] = { line = 1, character = 14 },
  }, 'what it takes the place of, in bytes')
  equal({ item.filterText, list.isIncomplete }, { '@inter', true }, 'how it is filtered')
  -- It is put in by Neovim's own completion of language servers.
  world:lua([[
    local client = vim.lsp.get_clients({ bufnr = 0, name = 'kode-prompt' })[1]
    vim.lsp.completion.enable(true, client.id, 0)
    vim.lsp.completion.get()
  ]])
  world:wait_lua('the menu is there', 'return vim.fn.pumvisible()', 1)
  world:type('<C-n><C-y>')
  World.wait_until('it is completed', function()
    return vim.startswith(world:text(), 'über allem\nlook ö @src/interesting.lua')
  end)
end

tests['names are completed after @ and commands after /'] = function(world)
  a_prompt(world)
  world:type('ilook at @inter')
  world:wait_lua('the menu is there', 'return vim.fn.pumvisible()', 1)
  world:shot('completion')
  world:type('<C-n><C-y>')
  World.wait_until('it is completed', function()
    return world:text() == 'look at @src/interesting.lua\n' or world:text() == 'look at @src/interesting.lua \n'
  end)
  world:type('<Esc>cc/comp<C-x><C-u>')
  World.wait_until('the command is offered', function()
    local items = world:lua("return vim.fn.complete_info({ 'items' }).items")
    return #items > 0 and items[1].word:find('compact', 1, true) ~= nil
  end)
end

tests['a completion plugin has the menu for itself'] = function(world)
  a_prompt(world)
  world:lua("package.loaded['blink.cmp'] = {}")
  world:type('ilook at @inter')
  world:wait_text('look at @inter\n')
  equal(#asked_as_plugins_do(world)[2].items, 1, 'what it is given')
  -- The answer to its question came after any to ours.
  equal(world:lua('return vim.fn.pumvisible()'), 0, 'menus of our own')
end

tests['all prompts share one server of the prompt, and it ends with Neovim'] = function(world)
  a_prompt(world)
  world:command('Kode new')
  world:wait_lua('there are two prompts', [[
    local count = 0
    for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
      if vim.bo[bufnr].filetype == 'kodeprompt' then count = count + 1 end
    end
    return count
  ]], 2)
  equal(world:lua("return #vim.lsp.get_clients({ name = 'kode-prompt' })"), 1, 'the servers of prompts')
  world:command('quitall!')
  equal(vim.fn.jobwait({ world.nvim }, 30000)[1], 0, 'how it ended')
end

return tests
