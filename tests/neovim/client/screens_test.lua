--- Every kind of prompt on screens of several sizes.
---
--- Rule: `fixtures/screens` has the screens as a user sees them, and every answer is on each of them. KODE_LS_RECORD=1
--- records them again; a recording has to be read before it is kept.

local World = require('client.world')
local equal = World.equal

local here = vim.fs.dirname(vim.fs.abspath(debug.getinfo(1, 'S').source:sub(2)))
local fixtures = vim.fs.joinpath(vim.fs.dirname(here), 'fixtures/screens')

--- A prompt with all that most have.
local function permission(more)
  return vim.tbl_extend('force', {
    sessionId = 'ses_1',
    permissionId = 'perm_1',
    callId = 'call_1',
    itemId = 'item_2',
    tool = 'Bash',
    reason = 'mode default asks before commands',
    risks = {},
    scopes = { 'once', 'session', 'project', 'user' },
    input = {},
    timestamp = '2026-01-31T12:00:00Z',
  }, more)
end

local function offers(rule)
  local list = {}
  for _, scope in ipairs({ 'session', 'project', 'user' }) do
    table.insert(list, { scope = scope, rules = { rule }, spared = { matched = 1, of = 3 } })
  end
  return list
end

--- A unified diff that changes one line and adds some.
local function diff(added)
  local lines = { '--- a/src/greeting.py', '+++ b/src/greeting.py', '@@ -1,2 +1,' .. added + 2 .. ' @@', ' def greet(name):' }
  table.insert(lines, '-    return "Helo, " + name')
  table.insert(lines, '+    return "Hello, " + name')
  for number = 1, added do
    table.insert(lines, ('+line %d of the new text'):format(number))
  end
  return table.concat(lines, '\n') .. '\n'
end

local long_command = 'cd server && cargo build --release --locked --workspace && cargo test --release --locked '
  .. '--workspace -- --include-ignored && rm -rf target/package'

--- The prompts by their kinds: what waits, and what has to be on the screen.
local kinds = {
  command = {
    permissions = {
      permission({
        title = 'Run make test',
        preview = { type = 'command', command = 'make test', cwd = '/project' },
        offers = offers('Bash(make test)'),
      }),
    },
    shows = { '$ make test' },
  },
  ['long-command'] = {
    permissions = {
      permission({
        title = 'Run ' .. long_command,
        preview = { type = 'command', command = long_command, cwd = '/project' },
        risks = { 'Deletes recursively: target/package.' },
        offers = offers('Bash(cargo build *)'),
      }),
    },
    shows = { 'target/package' },
  },
  edit = {
    permissions = {
      permission({
        tool = 'Edit',
        mode = 'acceptEdits',
        title = 'Edit src/greeting.py',
        reason = 'mode default asks before edits',
        preview = { type = 'diff', paths = { 'src/greeting.py' }, unified = diff(0) },
        offers = offers('Edit(/src/greeting.py)'),
      }),
    },
    shows = { '--- a/src/greeting.py' },
  },
  ['long-edit'] = {
    permissions = {
      permission({
        tool = 'Write',
        mode = 'acceptEdits',
        title = 'Write src/greeting.py',
        reason = 'mode default asks before edits',
        preview = { type = 'diff', paths = { 'src/greeting.py' }, unified = diff(60) },
        offers = offers('Edit(/src/greeting.py)'),
      }),
    },
    shows = { '--- a/src/greeting.py', 'K shows all' },
  },
  read = {
    permissions = {
      permission({
        tool = 'Read',
        title = 'Read /etc/hosts',
        reason = 'outside the workspace',
        risks = { '/etc/hosts is outside the workspace.' },
        scopes = { 'once', 'session' },
        preview = { type = 'paths', paths = { '/etc/hosts' } },
      }),
    },
    shows = { '/etc/hosts' },
  },
  fetch = {
    permissions = {
      permission({
        tool = 'WebFetch',
        title = 'Fetch https://example.com/docs',
        reason = 'mode default asks before requests to the network',
        risks = { 'Reaches the network: example.com.' },
        preview = { type = 'paths', paths = { 'https://example.com/docs' } },
        offers = offers('WebFetch(domain:example.com)'),
      }),
    },
    shows = { 'https://example.com/docs' },
  },
  mcp = {
    permissions = {
      permission({
        tool = 'mcp__tracker__create_issue',
        title = 'tracker: create_issue',
        reason = 'mode default asks before tools of MCP servers',
        preview = { type = 'paths', paths = { 'create_issue {"title":"The build fails","labels":["ci"]}' } },
        offers = offers('mcp__tracker__create_issue'),
      }),
    },
    shows = { 'create_issue' },
  },
  several = {
    permissions = {
      permission({
        title = 'Run make test',
        preview = { type = 'command', command = 'make test', cwd = '/project' },
        offers = offers('Bash(make test)'),
      }),
      permission({
        permissionId = 'perm_2',
        title = 'Run make install',
        preview = { type = 'command', command = 'make install', cwd = '/project' },
        offers = offers('Bash(make install)'),
      }),
    },
    shows = { '$ make test', '? Run make install' },
  },
  question = {
    questions = {
      {
        sessionId = 'ses_1',
        questionId = 'ques_1',
        questions = {
          {
            header = 'Database',
            question = 'Which database should the service use?',
            multiSelect = false,
            options = {
              { label = 'PostgreSQL', description = 'a server of its own; transactions and extensions' },
              { label = 'SQLite', description = 'one file; no server to run' },
              { label = 'None', description = 'keep it in memory' },
            },
          },
        },
        timestamp = '2026-01-31T12:00:00Z',
      },
    },
    shows = { 'Which database' },
  },
  ['several-questions'] = {
    questions = {
      {
        sessionId = 'ses_1',
        questionId = 'ques_1',
        questions = {
          {
            header = 'Extras',
            question = 'Which extras?',
            multiSelect = true,
            options = { { label = 'Cache', description = '' }, { label = 'Metrics', description = '' } },
          },
          {
            header = 'Language',
            question = 'Which language?',
            multiSelect = false,
            options = { { label = 'Rust', description = '' }, { label = 'Go', description = '' } },
          },
        },
        timestamp = '2026-01-31T12:00:00Z',
      },
    },
    shows = { 'Which extras?', 'Which language?' },
  },
  plan = {
    questions = {
      {
        sessionId = 'ses_1',
        questionId = 'ques_1',
        kind = 'plan',
        plan = '# Plan\n\n1. Read the tests.\n2. Mend the greeting.\n3. Run the tests.\n\n'
          .. ('A long explanation of the third step follows here. '):rep(20),
        questions = {
          {
            header = 'Plan',
            question = 'Carry out this plan?',
            multiSelect = false,
            options = {
              { label = 'Keep planning', description = '' },
              { label = 'Accept', description = 'edits ask' },
              { label = 'Accept and edit without asking', description = '' },
            },
          },
        },
        timestamp = '2026-01-31T12:00:00Z',
      },
    },
    shows = { '# Plan', 'K shows all' },
  },
  limit = {
    questions = {
      {
        sessionId = 'ses_1',
        questionId = 'ques_1',
        kind = 'turnLimit',
        questions = {
          {
            header = 'Limit',
            question = 'The limit of 100 model calls is reached. Continue?',
            multiSelect = false,
            options = {
              { label = 'Continue', description = '100 more calls' },
              { label = 'Stop', description = '' },
            },
          },
        },
        timestamp = '2026-01-31T12:00:00Z',
      },
    },
    shows = { 'The limit of 100' },
  },
  candidates = {
    questions = {
      {
        sessionId = 'ses_1',
        questionId = 'ques_1',
        kind = 'candidates',
        candidates = {
          { text = 'I would rename the function.', calls = { { name = 'Edit', input = { file_path = 'a.py' } } } },
          { text = 'I would leave it as it is.', calls = {} },
        },
        questions = {
          {
            header = 'Answers',
            question = 'Which answer should be used?',
            multiSelect = false,
            options = { { label = 'Answer A', description = '' }, { label = 'Answer B', description = '' } },
          },
        },
        timestamp = '2026-01-31T12:00:00Z',
      },
    },
    shows = { 'I would rename' },
  },
}

local sizes = {
  { columns = 80, lines = 24, layout = 'split' },
  { columns = 80, lines = 24, layout = 'float' },
  { columns = 100, lines = 30, layout = 'float' },
  { columns = 120, lines = 40, layout = 'split' },
}

--- Opens a conversation that waits for an answer, without a server.
local function open(world, waits, size)
  return world:lua(
    [[
      local waits, size = ...
      local nothing = function() end
      local connection = {
        status = 'ready', root = '/project', sessions = {}, client = nothing, ask = nothing, request = nothing,
      }
      local function item(number, body)
        return { itemId = 'item_' .. number, turnId = 'turn_1', timestamp = '2026-01-31T12:00:00Z', body = body }
      end
      local session = require('kode.session').new({
        sessionId = 'ses_0123456789', title = 'Mend the greeting', bookmark = { seq = 1 }, state = 'PAUSED', mode = 'default',
        model = { name = 'main' }, moreItems = false, queue = {},
        items = {
          item(1, { type = 'userMessage', text = 'Mend the greeting and run the tests.' }),
          item(2, { type = 'agentMessage', complete = true, interrupted = false, text = 'I look at the file first.' }),
        },
        pendingPermissions = waits.permissions or {}, questions = waits.questions or {},
      })
      local surfaces = require('kode.surface')
      if surfaces.all()[session.id] then surfaces.forget(session.id) end
      surfaces.watch(connection, session)
      local surface = surfaces.all()[session.id]
      require('kode.layout').open(surface, size.layout)
      surface.transcript:draw()
      local labels = {}
      for _, footer in ipairs(surface.transcript.footers) do
        for _, choice in ipairs(footer.choices) do table.insert(labels, choice.key .. ' ' .. choice.label) end
      end
      return labels
    ]],
    waits,
    size
  )
end

local function compare(name, screen)
  local path = vim.fs.joinpath(fixtures, name .. '.txt')
  if vim.env.KODE_LS_RECORD then
    World.write(path, screen .. '\n')
  end
  local expected = World.read(path)
  if expected ~= screen .. '\n' then
    error(('the screen %s is\n%s\ninstead of\n%s'):format(name, screen, expected), 2)
  end
end

local tests = {}

--- The screen once it shows all the given texts, a prompt's unless others are given: two equal looks in a row, since a
--- resize clears it for a moment and a terminal draws in parts.
local function settled(world, ...)
  local texts = select('#', ...) > 0 and { ... } or { 'waits for you' }
  local before
  World.wait_until('the screen has settled', function()
    local now = world:terminal_screen()
    local is_drawn = now == before
    for _, text in ipairs(texts) do
      is_drawn = is_drawn and now:find(text, 1, true) ~= nil
    end
    before = now
    return is_drawn
  end)
  return before
end

--- Fails unless every answer is on the screen.
local function has_answers(screen, labels)
  assert(#labels > 1, 'there are answers')
  for _, label in ipairs(labels) do
    local key, text = label:match('^(%S+) (.*)$')
    assert(screen:find(('%-2s %s'):format(key, text), 1, true), ('%s is not on the screen:\n%s'):format(label, screen))
  end
end

for kind, case in pairs(kinds) do
  tests['every answer is on the screen, of whatever size: ' .. kind] = function(world)
    world:start_terminal({}, 80, 24)
    for _, size in ipairs(sizes) do
      world:resize(size.columns, size.lines)
      local labels = open(world, { permissions = case.permissions, questions = case.questions }, size)
      local screen = settled(world)
      has_answers(screen, labels)
      for _, part in ipairs(case.shows) do
        assert(screen:find(part, 1, true), ('%s is not on the screen:\n%s'):format(part, screen))
      end
      compare(('%s-%dx%d-%s'):format(kind, size.columns, size.lines, size.layout), screen)
      world:lua("require('kode.layout').close()")
    end
  end
end

tests['a screen that shrinks or grows keeps every answer'] = function(world)
  for _, layout in ipairs({ 'split', 'float' }) do
    local other = World.new()
    other:start_terminal({}, 120, 40)
    local ok, problem = pcall(function()
      local labels = open(other, { permissions = kinds['long-edit'].permissions }, { layout = layout })
      for _, size in ipairs({ { 80, 24 }, { 120, 40 }, { 100, 30 } }) do
        other:resize(size[1], size[2])
        has_answers(settled(other), labels)
      end
    end)
    other:close()
    assert(ok, problem)
  end
  world.jobs = {}
end

for _, size in ipairs({ { 80, 24 }, { 100, 30 }, { 120, 40 } }) do
  tests[('the list of Neovim itself shows the command above its answers, %dx%d'):format(size[1], size[2])] = function(world)
    world:start_terminal({}, size[1], size[2])
    open(world, { permissions = kinds['long-command'].permissions }, {
      columns = size[1],
      lines = size[2],
      layout = 'split',
    })
    world:command('Kode permission')
    local screen = settled(world, '1: Deny', '2: Allow once', 'rm -rf target/package', 'Deletes recursively')
    compare(('list-%dx%d'):format(size[1], size[2]), screen)
    world:type('<CR>')
  end
end

tests['a character that could hide something in a command is escaped as the server escapes it'] = function(world)
  world:start({})
  local server = World.read(World.root .. '/server/src/display.rs')
  local ranges = server:match('fn is_hidden.*matches!%(char,(.-)\n}\n') or ''
  local codes = {}
  for code in ranges:gmatch("\\u{(%x+)}") do
    codes[#codes + 1] = tonumber(code, 16)
  end
  assert(#codes > 20, 'the list is read')
  for _, code in ipairs(codes) do
    local shown = world:lua('return require("kode.render").exact_line(vim.fn.nr2char(..., true))', code)
    equal(shown, ('\\u{%x}'):format(code), 'the character')
  end
  equal(world:lua([[return require('kode.render').exact_line('rm x\r\27[2K ls\nGrüße 世界')]]), 'rm x\\u{d}\\u{1b}[2K ls\\nGrüße 世界', 'a line')
end

return tests
