--- The agent in a real Neovim with nothing but its own `vim.lsp` and the configuration that the README of the client shows.
---
--- Rule: the Neovim under test is a process of its own that is driven as a person does it, by typed keys through its
--- main loop; the rest is only checked. Every wait is for something that happens.
---
--- Run it with `nvim --clean -l tests/neovim/run.lua`; KODE_LS_BIN names the program if it is not the debug build.

local LIMIT = 30000

local root = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(vim.fs.abspath(arg[0]))))
local program = vim.env.KODE_LS_BIN or vim.fs.joinpath(root, 'target/debug/kode-ls')
assert(vim.fn.executable(program) == 1, program .. ' is not there: run `cargo build`, or set KODE_LS_BIN')

local function wait_until(what, condition)
  assert(vim.wait(LIMIT, condition, 10), 'waited in vain until ' .. what)
end

local function write(path, text)
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  local file = assert(io.open(path, 'w'))
  file:write(text)
  file:close()
end

local function read(path)
  local file = assert(io.open(path))
  local text = file:read('a')
  file:close()
  return text
end

--- The Lua that the README of the client shows for a configuration without the plugin.
local function readme_config()
  for block in read(vim.fs.joinpath(root, 'editors/neovim/README.md')):gmatch('\n```lua\n(.-)\n```') do
    if block:find("vim.lsp.enable('kode')", 1, true) then
      return block
    end
  end
  error('editors/neovim/README.md has no Lua that enables kode')
end

--- The same for people who have a key: without the demo's model.
local function config_with_key()
  local config, count = readme_config():gsub('[^\n]*init_options[^\n]*\n', '')
  assert(count == 1, 'editors/neovim/README.md sets init_options in one line')
  return config
end

--- One test's world: a project, a model, a Neovim.
local World = {}
World.__index = World

function World.new()
  local folder = assert(vim.uv.fs_realpath(vim.fn.tempname():match('(.*)/')))
  folder = assert(vim.uv.fs_mkdtemp(folder .. '/kode-XXXXXX'))
  vim.fn.mkdir(folder .. '/project/.git', 'p')
  return setmetatable({ folder = folder, jobs = {}, env = {} }, World)
end

function World:path(name)
  return self.folder .. '/project/' .. name
end

--- Serves a model that answers any prompt with these steps.
function World:serve(steps)
  local script = self.folder .. '/script.json'
  write(script, vim.json.encode({ programs = { { steps = steps } } }))
  local output = ''
  self.jobs[#self.jobs + 1] = vim.fn.jobstart({ program, 'scripted-model', '--script', script }, {
    on_stdout = function(_, data)
      output = output .. table.concat(data, '\n')
    end,
  })
  wait_until('the model listens', function()
    return output:find('\n')
  end)
  self.env.ANTHROPIC_BASE_URL = vim.json.decode(output).listening
  self.env.ANTHROPIC_API_KEY = 'test-key'
end

--- Starts the Neovim under test on a file of the project and waits until kode is attached.
function World:edit(config, name)
  local bin = vim.fs.joinpath(self.folder, 'bin')
  vim.fn.mkdir(bin)
  assert(vim.uv.fs_symlink(program, bin .. '/kode-ls'))
  write(self.folder .. '/init.lua', config)
  local env = vim.tbl_extend('error', self.env, {
    PATH = bin .. ':' .. vim.env.PATH,
    HOME = self.folder,
    KODE_LS_HOME = self.folder .. '/state',
  })
  for _, kind in ipairs({ 'CONFIG', 'DATA', 'STATE', 'CACHE' }) do
    env['XDG_' .. kind .. '_HOME'] = self.folder .. '/xdg'
  end
  local command = { vim.v.progpath, '--headless', '--embed', '-n', '-i', 'NONE', '-u', self.folder .. '/init.lua', name }
  self.nvim = vim.fn.jobstart(command, { rpc = true, cwd = self.folder .. '/project', env = env })
  self.jobs[#self.jobs + 1] = self.nvim
  self:lua([[
    progress, asked = {}, {}
    vim.api.nvim_create_autocmd('LspProgress', {
      callback = function(event) table.insert(progress, event.data.params.value) end,
    })
  ]])
  wait_until('kode is attached', function()
    return self:lua([[
      local client = vim.lsp.get_clients({ bufnr = 0, name = 'kode' })[1]
      return client ~= nil and client.initialized
    ]])
  end)
end

function World:lua(code)
  return vim.rpcrequest(self.nvim, 'nvim_exec_lua', code, {})
end

function World:type(keys)
  vim.rpcrequest(self.nvim, 'nvim_input', keys)
end

function World:text()
  return table.concat(self:lua('return vim.api.nvim_buf_get_lines(0, 0, -1, true)'), '\n') .. '\n'
end

function World:wait_text(text)
  local ok = vim.wait(LIMIT, function()
    return self:text() == text
  end, 10)
  assert(ok, ('the buffer has\n%s\ninstead of\n%s'):format(self:text(), text))
end

--- Replaces the picker, as plugins do: what it is asked is kept in `asked` until `answer` answers it.
function World:use_picker()
  self:lua([[
    vim.ui.select = function(items, options, choose)
      table.insert(asked, { items = items, options = options, choose = choose })
    end
  ]])
end

--- Waits for a question and answers it with the choice of that title; gives the question.
function World:answer(title)
  wait_until('something is asked', function()
    return self:lua('return #asked > 0')
  end)
  return self:lua(([[
    local question = table.remove(asked, 1)
    for _, item in ipairs(question.items) do
      if question.options.format_item(item) == %q then
        question.choose(item)
        return question.options.prompt
      end
    end
    error('offered were only ' .. vim.inspect(question.items))
  ]]):format(title))
end

--- Waits until a turn has ended; gives what its progress has said, kind and message of each.
function World:wait_turn()
  wait_until('the turn has ended', function()
    return self:lua([[return #progress > 0 and progress[#progress].kind == 'end']])
  end)
  return self:lua('local told = progress; progress = {}; return told')
end

function World:close()
  for _, job in ipairs(self.jobs) do
    vim.fn.jobstop(job)
  end
  vim.fn.jobwait(self.jobs, LIMIT)
  vim.fn.delete(self.folder, 'rf')
end

local function say(text)
  return { content = { { type = 'text', text = text } } }
end

local function call(name, input)
  return { content = { { type = 'tool_use', name = name, input = input } } }
end

local function equal(actual, expected, what)
  if not vim.deep_equal(actual, expected) then
    error(('%s: %s instead of %s'):format(what, vim.inspect(actual), vim.inspect(expected)), 2)
  end
end

local tests = {}

--- A project whose model changes one word of a file, and a Neovim with an unsaved line in it.
local function fix_a_typo(world)
  write(world:path('greeting.py'), 'first = 1\ngreeting = "Helo"\nlast = 3\n')
  world:serve({
    call('Read', { file_path = '{{cwd}}/greeting.py' }),
    call('Edit', { file_path = '{{cwd}}/greeting.py', old_string = 'Helo', new_string = 'Hello 🙂' }),
    say('The greeting is fixed.'),
  })
  world:edit(config_with_key(), 'greeting.py')
  world:type('ggOmine = "unsaved 🙂"<Esc>G$')
  world:wait_text('mine = "unsaved 🙂"\nfirst = 1\ngreeting = "Helo"\nlast = 3\n')
end

tests['an edit is one undo step in the unsaved buffer'] = function(world)
  fix_a_typo(world)
  world:use_picker()
  local cursor = world:lua('return vim.api.nvim_win_get_cursor(0)')
  world:type(':Kode fix the typo<CR>')
  local question = world:answer('Allow once')
  assert(question:find('greeting.py', 1, true) and question:find('+greeting = "Hello 🙂"', 1, true), question)
  local told = world:wait_turn()

  local fixed = 'mine = "unsaved 🙂"\nfirst = 1\ngreeting = "Hello 🙂"\nlast = 3\n'
  world:wait_text(fixed)
  equal(world:lua('return vim.api.nvim_win_get_cursor(0)'), cursor, 'the cursor')
  equal(world:lua('return vim.bo.modified'), true, 'modified')
  equal(read(world:path('greeting.py')), 'first = 1\ngreeting = "Helo"\nlast = 3\n', 'the file on disk')
  equal({ told[1].kind, told[#told].kind }, { 'begin', 'end' }, 'the progress')

  world:type('u')
  world:wait_text('mine = "unsaved 🙂"\nfirst = 1\ngreeting = "Helo"\nlast = 3\n')
  equal(world:lua('return vim.bo.modified'), true, 'modified after undo')
  world:type('<C-r>')
  world:wait_text(fixed)
  world:type('uu')
  world:wait_text('first = 1\ngreeting = "Helo"\nlast = 3\n')
end

tests['typing goes on while the prompt is open'] = function(world)
  fix_a_typo(world)
  world:use_picker()
  world:type(':Kode fix the typo<CR>')
  wait_until('something is asked', function()
    return world:lua('return #asked > 0')
  end)
  world:type('ggOabove<Esc>Gobelow<Esc>')
  world:wait_text('above\nmine = "unsaved 🙂"\nfirst = 1\ngreeting = "Helo"\nlast = 3\nbelow\n')
  world:answer('Allow once')
  world:wait_text('above\nmine = "unsaved 🙂"\nfirst = 1\ngreeting = "Hello 🙂"\nlast = 3\nbelow\n')
  world:wait_turn()
end

tests['a prompt is answered by keys in the picker Neovim has by itself'] = function(world)
  fix_a_typo(world)
  world:type(':Kode fix the typo<CR>')
  wait_until('the picker reads a number', function()
    return vim.rpcrequest(world.nvim, 'nvim_get_mode').mode == 'c'
  end)
  -- The no is the first choice, so that a key that was meant for the buffer does not approve.
  world:type('2<CR>')
  world:wait_text('mine = "unsaved 🙂"\nfirst = 1\ngreeting = "Hello 🙂"\nlast = 3\n')
end

tests['a no leaves the buffer as it was'] = function(world)
  fix_a_typo(world)
  world:use_picker()
  local before = world:text()
  world:type(':Kode fix the typo<CR>')
  world:answer('Deny')
  world:wait_turn()
  equal(world:text(), before, 'the buffer')
end

tests['kode.cancel ends the turn'] = function(world)
  write(world:path('a.txt'), 'a\n')
  local held = say('Never said.')
  held.gate = 'never opened'
  world:serve({ held })
  world:edit(config_with_key(), 'a.txt')
  world:type(':Kode think for ever<CR>')
  wait_until('the turn has begun', function()
    return world:lua('return #progress > 0')
  end)
  world:lua([[
    vim.lsp.get_clients({ name = 'kode' })[1]:exec_cmd({ title = 'Cancel', command = 'kode.cancel' })
  ]])
  local told = world:wait_turn()
  equal(told[#told].message, 'cancelled', 'the last progress')
end

tests['the demo needs no key'] = function(world)
  write(world:path('a.txt'), 'a\n')
  world:edit(readme_config(), 'a.txt')
  world:use_picker()
  world:type(':Kode hello<CR>')
  -- The command it runs then only looks, and it asks no permission.
  assert(world:answer('Allow once'):find('kode-demo.md', 1, true), 'the prompt is for a file')
  local told = world:wait_turn()
  equal(told[#told].message, 'done', 'the last progress')
  assert(read(world:path('kode-demo.md')):find('> hello', 1, true), 'the file has the prompt')
  local shown = "return vim.api.nvim_exec2('messages', { output = true }).output"
  wait_until('the answer is shown', function()
    return world:lua(shown):find('hello from the demo', 1, true)
  end)
end

--- A project whose model changes two places of a file in one call, unasked.
local function two_places(world)
  write(world:path('a.txt'), 'one\ntwo\nthree\nfour\nfive\nsix\nseven\n')
  local edits = { { old_string = 'two', new_string = 'TWO' }, { old_string = 'six', new_string = 'SIX' } }
  world:serve({
    call('Read', { file_path = '{{cwd}}/a.txt' }),
    call('MultiEdit', { file_path = '{{cwd}}/a.txt', edits = edits }),
    say('Edited.'),
  })
  world:edit(config_with_key(), 'a.txt')
  world:type('Gomine<Esc>')
  world:wait_text('one\ntwo\nthree\nfour\nfive\nsix\nseven\nmine\n')
  world:lua([[
    vim.lsp.get_clients({ name = 'kode' })[1]:exec_cmd({
      title = 'Mode', command = 'kode.setMode', arguments = { { mode = 'acceptEdits' } },
    })
  ]])
  world:type(':Kode edit<CR>')
  world:wait_turn()
  world:wait_text('one\nTWO\nthree\nfour\nfive\nSIX\nseven\nmine\n')
  world:wait_hints({ 1, 5 })
end

--- Waits until the hints in the buffer are on these lines, counted from 0.
function World:wait_hints(lines)
  local shown
  local ok = vim.wait(LIMIT, function()
    shown = self:lua([[
      local hints = {}
      for _, hint in ipairs(vim.diagnostic.get(0)) do
        assert(hint.severity == vim.diagnostic.severity.HINT, vim.inspect(hint))
        table.insert(hints, hint.lnum)
      end
      table.sort(hints)
      return hints
    ]])
    return vim.deep_equal(shown, lines)
  end, 10)
  assert(ok, ('hints are on the lines %s instead of %s'):format(vim.inspect(shown), vim.inspect(lines)))
end

--- The titles of the code actions on a line, counted from 1.
function World:actions(line)
  return self:lua(([[
    vim.api.nvim_win_set_cursor(0, { %d, 0 })
    local client = vim.lsp.get_clients({ name = 'kode' })[1]
    local params = vim.lsp.util.make_range_params(0, client.offset_encoding)
    params.context = { diagnostics = {} }
    local titles = {}
    for _, action in ipairs(client:request_sync('textDocument/codeAction', params, 10000).result or {}) do
      table.insert(titles, action.title)
    end
    return titles
  ]]):format(line))
end

--- Applies the only code action of a line whose title matches, as the key of Neovim does.
function World:apply_action(line, title)
  self:lua(([[
    vim.api.nvim_win_set_cursor(0, { %d, 0 })
    vim.lsp.buf.code_action({
      apply = true,
      filter = function(action) return action.title:match(%q) ~= nil end,
    })
  ]]):format(line, title))
end

tests['one undo takes back one call, and the review knows it'] = function(world)
  two_places(world)
  assert(#world:actions(2) > 0, 'there is something to decide')
  world:type('u')
  world:wait_text('one\ntwo\nthree\nfour\nfive\nsix\nseven\nmine\n')
  world:wait_hints({})
  equal(world:actions(2), {}, 'the actions after undo')
  world:type('<C-r>')
  world:wait_text('one\nTWO\nthree\nfour\nfive\nSIX\nseven\nmine\n')
  world:wait_hints({ 1, 5 })
  assert(#world:actions(2) > 0, 'there is something to decide again')
end

tests['changes are kept and undone by code actions'] = function(world)
  two_places(world)
  world:apply_action(2, 'Keep this change')
  world:wait_hints({ 5 })
  world:wait_text('one\nTWO\nthree\nfour\nfive\nSIX\nseven\nmine\n')
  world:type('ggOabove<Esc>')
  world:wait_text('above\none\nTWO\nthree\nfour\nfive\nSIX\nseven\nmine\n')
  world:apply_action(7, 'Undo this change')
  world:wait_text('above\none\nTWO\nthree\nfour\nfive\nsix\nseven\nmine\n')
  world:wait_hints({})
  world:type('u')
  world:wait_text('above\none\nTWO\nthree\nfour\nfive\nSIX\nseven\nmine\n')
  world:wait_hints({ 6 })
  world:type(':write<CR>')
  world:wait_hints({})
  equal(world:actions(7), {}, 'the actions after saving')
end

local passed, failed = 0, 0
for name, test in vim.spairs(tests) do
  local world = World.new()
  local ok, problem = xpcall(test, debug.traceback, world)
  world:close()
  passed, failed = passed + (ok and 1 or 0), failed + (ok and 0 or 1)
  io.stdout:write(ok and ('ok   %s\n'):format(name) or ('FAIL %s\n%s\n'):format(name, problem))
end
io.stdout:write(('%d passed, %d failed\n'):format(passed, failed))
os.exit(failed == 0 and 0 or 1)
