--- Reviewing what the agent has changed.
---
--- Rule: decorations are checked as extmarks and on the screen, decisions as text in buffers and on the disk.

local World = require('client.world')
local Scenes = require('client.scenes')
local TEXT, two_places, shown, wait_shown = Scenes.TEXT, Scenes.two_places, Scenes.shown, Scenes.wait_shown
local equal, call, say = World.equal, World.call, World.say

local tests = {}

tests['changes have signs and show what was removed'] = function(world)
  two_places(world)
  wait_shown(world, { 1, 5 }, { '1 two', '5 six' })
  world:wait_screen('┃ TWO')
  world:shot('review')
  -- They move along with the text while the user types above.
  world:type('ggOabove<Esc>')
  wait_shown(world, { 2, 6 }, { '2 two', '6 six' })
end

tests['keys go from change to change, keep one and undo one'] = function(world)
  two_places(world, { keymaps = { review = true } })
  wait_shown(world, { 1, 5 }, { '1 two', '5 six' })
  world:type('gg]k')
  World.wait_until('the cursor is on the first change', function()
    return world:lua('return vim.api.nvim_win_get_cursor(0)[1]') == 2
  end)
  world:type('\\kk')
  wait_shown(world, { 5 }, { '5 six' })
  world:type('gg]k')
  World.wait_until('the cursor is on the other change', function()
    return world:lua('return vim.api.nvim_win_get_cursor(0)[1]') == 6
  end)
  world:type('\\ku')
  world:wait_text('one\nTWO\nthree\nfour\nfive\nsix\nseven\n')
  wait_shown(world, {}, {})
  World.wait_until('the maps are gone with the changes', function()
    return world:lua("return vim.fn.maparg(']k', 'n')") == ''
  end)
  -- Undoing is one step that the editor's own undo knows.
  world:type('u')
  world:wait_text('one\nTWO\nthree\nfour\nfive\nSIX\nseven\n')
  wait_shown(world, { 5 }, { '5 six' })
end

tests['a list that was made of another text is not drawn, but asked for again'] = function(world)
  two_places(world)
  wait_shown(world, { 1, 5 }, { '1 two', '5 six' })
  world:lua([[
    local review = require('kode.surface').latest().review
    local _, file = next(review.files)
    file.version = file.version - 1
    for _, hunk in ipairs(file.hunks) do hunk.lineRange = { start = 0, ['end'] = 1 } end
    require('kode.review').draw(vim.fn.bufnr('a.txt'))
  ]])
  equal(shown(world), { {}, {} }, 'what is shown of the old list')
  wait_shown(world, { 1, 5 }, { '1 two', '5 six' })
end

tests['a second Neovim shows the changes of a session that it follows, where it has their text'] = function(world)
  two_places(world)
  local other = setmetatable({ folder = world.folder, jobs = {}, env = world.env }, World)
  other:start({ 'a.txt' })
  vim.list_extend(world.jobs, other.jobs)
  other:command('Kode resume')
  other:wait_screen('open in another window')
  other:command('wincmd t')
  wait_shown(other, { 1, 5 }, { '1 two', '5 six' })
  other:command('Kode review')
  World.wait_until('they are listed', function()
    return #other:lua('return vim.fn.getqflist()') == 2
  end)
  other:command('cclose')
  other:command('wincmd t | 2')
  other:command('Kode diff')
  World.wait_until('both sides are there', function()
    return other:lua([[
      local texts = {}
      for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
        local lines = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, 2, false)
        texts[#texts + 1] = lines[2]
      end
      return table.concat(texts, ' ')
    ]]) == 'two TWO'
  end)
  other:command('tabclose')
  -- The list of decisions there is another one; its places mean nothing in another text.
  other:command('wincmd t')
  other:type('ggOmine<Esc>')
  world:command('2')
  world:command('Kode keep')
  World.wait_until('one is left', function()
    return other:lua([[
      local _, file = next(require('kode.surface').latest().review.files)
      return #file.hunks
    ]]) == 1
  end)
  equal(shown(other), { {}, {} }, 'what is shown in another text')
  other:type('u')
  wait_shown(other, { 5 }, { '5 six' })
  other:command('6')
  other:command('Kode undo')
  other:wait_told(':Kode takeover')
  wait_shown(world, { 5 }, { '5 six' })
end

tests['keeping is repeated by the dot'] = function(world)
  two_places(world)
  world:lua("vim.keymap.set('n', 'gk', '<Plug>(kode-keep)')")
  wait_shown(world, { 1, 5 }, { '1 two', '5 six' })
  world:type('2Ggk')
  wait_shown(world, { 5 }, { '5 six' })
  world:type('6G.')
  wait_shown(world, {}, {})
  world:wait_text('one\nTWO\nthree\nfour\nfive\nSIX\nseven\n')
end

tests['a decision is taken back'] = function(world)
  two_places(world)
  wait_shown(world, { 1, 5 }, { '1 two', '5 six' })
  world:command('Kode undo all')
  world:wait_text(TEXT)
  wait_shown(world, {}, {})
  world:command('Kode revert')
  world:wait_text('one\nTWO\nthree\nfour\nfive\nSIX\nseven\n')
  wait_shown(world, { 1, 5 }, { '1 two', '5 six' })
  world:command('Kode keep file')
  wait_shown(world, {}, {})
end

tests['the quickfix list has all changes, and decides about them'] = function(world)
  two_places(world)
  wait_shown(world, { 1, 5 }, { '1 two', '5 six' })
  world:command('Kode review')
  World.wait_until('the list is open', function()
    return world:lua('return vim.bo.buftype') == 'quickfix'
  end)
  equal(
    world:lua('return vim.tbl_map(function(entry) return { entry.lnum, entry.text } end, vim.fn.getqflist())'),
    { { 2, 'applied +1 -1  TWO' }, { 6, 'applied +1 -1  SIX' } },
    'the list'
  )
  world:shot('quickfix')
  world:type('2G')
  world:command('Kode undo')
  world:wait_text('one\nTWO\nthree\nfour\nfive\nsix\nseven\n', 'a.txt')
end

tests['a file is marked as reviewed, which decides nothing and is in the list'] = function(world)
  two_places(world)
  wait_shown(world, { 1, 5 }, { '1 two', '5 six' })
  world:command('Kode reviewed')
  local texts = [[
    vim.cmd('Kode review file')
    return vim.tbl_map(function(entry) return entry.text end, vim.fn.getloclist(0))
  ]]
  world:wait_lua('it is in the list', texts, { 'reviewed, applied +1 -1  TWO', 'reviewed, applied +1 -1  SIX' })
  world:type('<C-w>p')
  world:command('lclose')
  world:command('Kode reviewed')
  world:wait_lua('the mark is gone', texts, { 'applied +1 -1  TWO', 'applied +1 -1  SIX' })
end

tests['the changes of one file are in the location list of its window, and are decided about there'] = function(world)
  two_places(world)
  wait_shown(world, { 1, 5 }, { '1 two', '5 six' })
  world:command('Kode review file')
  world:wait_lua('the list is open', 'return vim.fn.getwininfo(vim.api.nvim_get_current_win())[1].loclist', 1)
  equal(
    world:lua('return vim.tbl_map(function(entry) return entry.text end, vim.fn.getloclist(0))'),
    { 'applied +1 -1  TWO', 'applied +1 -1  SIX' },
    'the list'
  )
  equal(world:lua('return #vim.fn.getqflist()'), 0, 'the quickfix list')
  world:type('2G')
  world:command('Kode undo')
  world:wait_text('one\nTWO\nthree\nfour\nfive\nsix\nseven\n', 'a.txt')
end

tests['changes are code lenses as well, which the keys of Neovim run'] = function(world)
  two_places(world)
  wait_shown(world, { 1, 5 }, { '1 two', '5 six' })
  world:use_picker()
  world:type('2G')
  if world:lua('return vim.lsp.codelens.enable ~= nil') then
    world:lua('vim.lsp.codelens.enable(true)')
    world:wait_lua('the lenses are there', 'return #vim.lsp.codelens.get({ bufnr = 0 }) > 0', true)
    world:type('grx')
  else
    world:lua('vim.lsp.codelens.refresh()')
    world:wait_lua('the lenses are there', 'return #vim.lsp.codelens.get(0) > 0', true)
    world:lua('vim.lsp.codelens.run()')
  end
  world:answer('Kode: Undo')
  world:wait_text('one\ntwo\nthree\nfour\nfive\nSIX\nseven\n')
end

tests['where the user has written into a change, undoing asks first'] = function(world)
  two_places(world)
  wait_shown(world, { 1, 5 }, { '1 two', '5 six' })
  world:type('2G0amine<Esc>')
  world:wait_text('one\nTmineWO\nthree\nfour\nfive\nSIX\nseven\n')
  world:command('Kode undo')
  World.wait_until('the user is told', function()
    return world:lua('return table.concat(notified)'):find('you have edited there') ~= nil
  end)
  world:wait_text('one\nTmineWO\nthree\nfour\nfive\nSIX\nseven\n')
  world:command('Kode undo force')
  world:wait_text('one\ntwomine\nthree\nfour\nfive\nSIX\nseven\n')
end

tests['a change is looked at as a diff against the text without it'] = function(world)
  two_places(world)
  wait_shown(world, { 1, 5 }, { '1 two', '5 six' })
  world:command('Kode diff')
  World.wait_until('the diff is there', function()
    return #world:lua([[
      return vim.tbl_filter(function(window) return vim.wo[window].diff end, vim.api.nvim_tabpage_list_wins(0))
    ]]) == 2
  end)
  -- The diff shows removed text, so nothing else does, until it is closed.
  wait_shown(world, { 1, 5 }, {})
  world:shot('diff')
  equal(world:lua('return vim.fs.basename(vim.api.nvim_buf_get_name(0))'), 'a.txt', 'the right side')
  -- The right side is the file: Neovim's own commands take a change back.
  world:type('6Gdo')
  world:wait_text('one\nTWO\nthree\nfour\nfive\nsix\nseven\n')
  world:command('tabclose')
  wait_shown(world, { 1 }, { '1 two' })
end

--- A project whose agent asks to change two places.
local function asked_for(world)
  World.write(world:path('a.txt'), TEXT)
  world:serve({
    call('Read', { file_path = '{{cwd}}/a.txt' }),
    call('Edit', { file_path = '{{cwd}}/a.txt', old_string = 'two', new_string = 'TWO' }),
    say('Edited.'),
  })
  world:start({ 'a.txt' })
  world:command('Kode send go')
  World.wait_until('something is asked', function()
    return world:lua("return require('kode').waiting()") == 1
  end)
end

tests['a proposal is shown in the text, and accepted there'] = function(world)
  asked_for(world)
  wait_shown(world, { 1 }, { '1 TWO' })
  world:type('2G')
  world:command('Kode keep')
  world:wait_text('one\nTWO\nthree\nfour\nfive\nsix\nseven\n')
  world:wait_turns(1)
end

tests['a proposal is changed in the diff, and accepted as it stands there by writing it'] = function(world)
  asked_for(world)
  -- It is shown in the text by now, and still the proposal is what the diff is of.
  wait_shown(world, { 1 }, { '1 TWO' })
  world:command('Kode diff')
  World.wait_until('the proposal is there', function()
    return world:text() == 'one\nTWO\nthree\nfour\nfive\nsix\nseven\n'
      and world:lua('return vim.bo.buftype') == 'acwrite'
  end)
  world:type('2Gcc2<Esc>')
  world:shot('proposal')
  world:command('write')
  world:wait_turns(1)
  world:wait_text('one\n2\nthree\nfour\nfive\nsix\nseven\n', 'a.txt')
  equal(World.read(world:path('a.txt')), 'one\n2\nthree\nfour\nfive\nsix\nseven\n', 'the file')
  equal(#world:lua('return vim.api.nvim_list_tabpages()'), 1, 'the tab pages')
end

tests['a proposal that is closed without writing goes on waiting'] = function(world)
  asked_for(world)
  wait_shown(world, { 1 }, { '1 TWO' })
  world:command('Kode diff')
  World.wait_until('the proposal is there', function()
    return world:lua('return vim.bo.buftype') == 'acwrite'
  end)
  world:command('tabclose')
  World.wait_until('it is closed', function()
    return #world:lua('return vim.api.nvim_list_tabpages()') == 1
  end)
  equal(world:lua("return require('kode').waiting()"), 1, 'what waits')
  world:wait_text(TEXT, 'a.txt')
end

tests['a checkpoint brings files and conversation back'] = function(world)
  two_places(world)
  world:command('Kode open')
  world:wait_transcript('Edited.')
  world:use_picker()
  world:command('Kode restore')
  world:lua("vim.wait(5000, function() return #asked > 0 end)")
  world:answer(world:lua('return asked[1].options.format_item(asked[1].items[1])'))
  world:answer('Files and conversation')
  world:wait_text(TEXT, 'a.txt')
  World.wait_until('the conversation went back', function()
    return not world:transcript():find('Edited.', 1, true)
  end)
  world:command('Kode revert')
  world:wait_text('one\nTWO\nthree\nfour\nfive\nSIX\nseven\n', 'a.txt')
  world:wait_transcript('Edited.')
end

return tests
