--- Recorded sessions, drawn event by event.
---
--- Rule: the events in `fixtures/` are those of the real server, and what is drawn from them piece by piece is, in text and
--- marks, what is drawn from the whole. KODE_LS_RECORD=1 records them anew, with what they are drawn as.

local World = require('client.world')
local equal, call, say = World.equal, World.call, World.say

local here = vim.fs.dirname(vim.fs.abspath(debug.getinfo(1, 'S').source:sub(2)))
local fixtures = vim.fs.joinpath(vim.fs.dirname(here), 'fixtures')

--- What is recorded: the model's steps, and the keys of the user.
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
      world:wait_transcript('? Kode asks')
      world:type('<C-w>k]p1')
      World.wait_until('it is answered', function()
        return world:lua('return #vim.tbl_filter(function(data) return data.event.type == "permission_decided" end, told)') > 0
      end)
      World.wait_until('the turn has ended or asks', function()
        return world:lua([[
          return require('kode').waiting() > 0 or told[#told].event.type == 'done' or require('kode').session().state == 'READY'
        ]])
      end)
      if world:lua("return require('kode').waiting()") > 0 then
        world:wait_transcript('? Kode asks: Run')
        world:type('1')
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
      world:wait_transcript('## Waiting')
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

--- Draws a recording in a Neovim without a server, with a pause to draw after each so many events.
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

return tests
