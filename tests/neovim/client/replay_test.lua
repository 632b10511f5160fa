--- Recorded sessions, drawn event by event.
---
--- Rule: the events in `fixtures/` are those of the real server, and the drawing of them piece by piece is, in text and
--- marks, that of the whole. KODE_LS_RECORD=1 records them again, with their drawing.

local World = require('client.world')
local equal, call, say = World.equal, World.call, World.say

local here = vim.fs.dirname(vim.fs.abspath(debug.getinfo(1, 'S').source:sub(2)))
local fixtures = vim.fs.joinpath(vim.fs.dirname(here), 'fixtures')

--- The recording: the model's steps, and the keys of the user.
local recordings = {
  edit = {
    model = {
      {
        content = {
          { type = 'thinking', thinking = 'It is a typo.\nI look first.', signature = 'recorded' },
          { type = 'text', text = 'I look at it, and then:\n\n```lua\nfix()\n```' },
          { type = 'tool_use', name = 'Read', input = { file_path = '{{cwd}}/a.txt' } },
        },
      },
      call('Edit', { file_path = '{{cwd}}/a.txt', old_string = 'two', new_string = 'TWO\nand a half' }),
      call('Bash', { command = 'seq 1 5 && false', description = 'Count' }),
      say('Fixed. The command failed.'),
    },
    play = function(world)
      world:type('ifix it<Esc><CR>')
      world:wait_transcript('1  Deny')
      world:type('<C-w>k]p2')
      World.wait_until('it is answered', function()
        return world:lua('return #vim.tbl_filter(function(data) return data.event.type == "permission_decided" end, told)') > 0
      end)
      World.wait_until('the turn has ended or asks', function()
        return world:lua([[
          return require('kode').waiting() > 0 or told[#told].event.type == 'done' or require('kode').session().state == 'READY'
        ]])
      end)
      if world:lua("return require('kode').waiting()") > 0 then
        world:wait_transcript('## ? Run')
        world:type('2')
      end
      world:wait_turns(1)
    end,
  },
  questions = {
    model = {
      {
        when = '^ask',
        steps = {
          call('AskUserQuestion', {
            questions = {
              {
                question = 'Which color?',
                header = 'Color',
                multiSelect = false,
                options = { { label = 'Red', description = 'warm' }, { label = 'Blue', description = 'cold' } },
              },
            },
          }),
          call('TodoWrite', {
            todos = {
              { content = 'Paint', status = 'in_progress', activeForm = 'Painting' },
              { content = 'Dry', status = 'pending', activeForm = 'Drying' },
            },
          }),
          say('Blue it is.'),
        },
      },
      { when = '^wait', steps = { say('I have waited.') } },
    },
    play = function(world)
      world:type('iask me<Esc><CR>')
      world:wait_transcript('Which color?')
      world:type('iwait for me<Esc><CR>')
      world:wait_transcript('## Queue')
      world:type('<C-w>k]p2')
      world:wait_turns(2)
    end,
  },
}

local function record(world, name)
  local recording = recordings[name]
  World.write(world:path('a.txt'), 'one\ntwo\nthree\n')
  world:serve(recording.model)
  world:start({ 'a.txt' })
  world:lua([[
    local Session = require('kode.session')
    local reset = Session.reset
    Session.reset = function(self, snapshot)
      recorded = recorded or vim.deepcopy(snapshot)
      return reset(self, snapshot)
    end
  ]])
  world:command('Kode open')
  World.wait_until('the conversation is open', function()
    return world:lua('return vim.bo.filetype') == 'kodeprompt'
  end)
  recording.play(world)
  local text = world:lua([[
    local events = vim.tbl_map(function(data)
      return {
        sessionId = data.session_id, bookmark = data.bookmark, channel = data.channel, event = data.event,
      }
    end, told)
    return vim.json.encode({ snapshot = recorded, events = events })
  ]])
  -- Lua cannot tell an empty list from an empty object; drawing does not need to.
  local plain = vim.pesc(world.folder)
  World.write(vim.fs.joinpath(fixtures, name .. '.json'), (text:gsub(plain, '/recorded'):gsub(plain:gsub('/', '\\/'), '/recorded')) .. '\n')
end

--- Draws a recording in a Neovim without a server, with a pause to draw after each this many events.
local function replay(world, recording, every)
  return world:lua(
    [[
      local text, every = ...
      local recording = vim.json.decode(text, { luanil = { object = true, array = true } })
      local surface = require('kode.surface')
      local nothing = function() end
      local connection = {
        status = 'ready', root = '/recorded', sessions = {}, client = nothing, ask = nothing, request = nothing,
      }
      local session = require('kode.session').new(recording.snapshot)
      surface.watch(connection, session)
      local shown = surface.all()[session.id]
      shown:buffers()
      local transcript = shown.transcript
      local seen = {}
      for number, params in ipairs(recording.events) do
        session:apply(params)
        if number % every == 0 then transcript:draw() end
        for _, footer in ipairs(transcript.footers) do seen[footer.id] = footer.lines end
      end
      transcript:draw()
      local function drawn()
        local marks = {}
        local namespace = require('kode.highlight').transcript
        for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(transcript.buffer, namespace, 0, -1, { details = true })) do
          local details = mark[4]
          marks[#marks + 1] = ('%d:%d-%s %s %s'):format(
            mark[2], mark[3], details.end_col or '', details.hl_group or '',
            details.virt_text and details.virt_text[1][1] or '')
        end
        table.sort(marks)
        return { vim.api.nvim_buf_get_lines(transcript.buffer, 0, -1, true), marks }
      end
      local pieces = drawn()
      transcript:draw_all()
      local whole = drawn()
      local asked = {}
      for _, lines in vim.spairs(seen) do vim.list_extend(asked, lines) end
      -- An event that was folded in already changes nothing.
      local again = session:apply(recording.events[#recording.events])
      return { pieces = pieces, whole = whole, asked = asked, again = again }
    ]],
    recording,
    every
  )
end

local tests = {}

for name in pairs(recordings) do
  tests[name .. ' is drawn piece by piece as it is drawn whole'] = function(world)
    local path = vim.fs.joinpath(fixtures, name .. '.json')
    if vim.env.KODE_LS_RECORD then
      record(world, name)
    end
    local recording = World.read(path)
    local expected_path = vim.fs.joinpath(fixtures, name .. '.txt')
    for _, every in ipairs({ 1, 3, 1000000 }) do
      local fresh = World.new()
      fresh:start({})
      local ok, result = pcall(replay, fresh, recording, every)
      fresh:close()
      assert(ok, result)
      equal(result.pieces, result.whole, ('drawn after each %d events'):format(every))
      equal(result.again, false, 'whether an old event is news')
      local drawn = table.concat(result.whole[1], '\n') .. '\n'
      if every == 1 then
        drawn = drawn .. '\nasked meanwhile:\n' .. table.concat(result.asked, '\n') .. '\n'
        if vim.env.KODE_LS_RECORD then
          World.write(expected_path, drawn)
        end
        equal(drawn, World.read(expected_path), 'what is drawn')
      end
    end
  end
end

--- Replays the session that every client replays; the server's lists of hunks are answered as they were then.
local function replay_shared(world, recording)
  return world:lua(
    [[
      local recording = vim.json.decode(..., { luanil = { object = true, array = true } })
      local surfaces = require('kode.surface')
      local seq = 0
      local function files(uri)
        local newest = {}
        for _, answer in ipairs(recording.edits) do
          if answer.seq <= seq then newest = answer.result.files end
        end
        return vim.tbl_filter(function(file) return uri == nil or file.uri == uri end, newest)
      end
      local function ask(_, method, params, callback)
        assert(method == 'agent/edits/list', method)
        callback({ files = files(params.uri) })
      end
      local nothing = function() end
      local connection = {
        status = 'ready', root = '/project', sessions = {}, client = nothing, ask = ask, request = nothing,
      }
      local session = require('kode.session').new(recording.first)
      surfaces.watch(connection, session)
      local surface = surfaces.all()[session.id]
      local bufnr = surface:buffers()
      local function hunks()
        local list = {}
        for _, file in ipairs(surface.review:sorted()) do
          for _, hunk in ipairs(file.hunks) do
            table.insert(list, { file = vim.fs.basename(file.path), state = hunk.state })
          end
        end
        return list
      end
      local lists, place = {}, 1
      for _, answer in ipairs(recording.edits) do
        while recording.events[place] and recording.events[place].bookmark.seq <= answer.seq do
          seq = recording.events[place].bookmark.seq
          session:apply(recording.events[place])
          place = place + 1
        end
        assert(vim.wait(5000, function() return surface.review.timer == nil end, 5), 'the list is asked for')
        table.insert(lists, hunks())
      end
      for last = place, #recording.events do
        session:apply(recording.events[last])
      end
      surface.transcript:draw()
      local items = vim.tbl_map(function(item)
        local body = item.body
        return {
          kind = body.type,
          tool = body.type == 'toolCall' and body.name or nil,
          text = body.type ~= 'toolCall' and body.text or nil,
          status = body.state or body.level or (body.interrupted and 'interrupted') or 'complete',
        }
      end, session.items)
      return { items = items, hunks = hunks(), lists = lists, drawn = vim.api.nvim_buf_get_lines(bufnr, 0, -1, true) }
    ]],
    recording
  )
end

tests['the session that every client replays comes to the same items and hunks'] = function(world)
  local folder = vim.fs.joinpath(World.root, 'tests/fixtures/replay')
  local expected = vim.json.decode(World.read(folder .. '/expected.json'))
  world:start({})
  local result = replay_shared(world, World.read(folder .. '/session.json'))
  equal(result.items, expected.items, 'the items')
  equal(result.hunks, expected.hunks, 'the hunks')
  equal(result.lists, expected.lists, 'the hunks after each list')
  -- The messages are in the transcript, in this order.
  local drawn, at = table.concat(result.drawn, '\n'), 1
  for _, item in ipairs(expected.items) do
    if item.text and item.kind ~= 'thinking' then
      local first, last = drawn:find(vim.trim(item.text), at, true)
      assert(first, ('%s is not drawn after what comes before it: %s'):format(item.text, drawn))
      at = last + 1
    end
  end
  assert(not drawn:find('## ?', 1, true), 'nothing waits: ' .. drawn)
end

return tests
