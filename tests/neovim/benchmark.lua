--- How long the Neovim client takes: loading, and how soon Neovim answers while an answer streams into a long transcript or
--- the agent edits many files.
---
--- Rule: figures are printed beside a floor that was measured in the same run; nothing passes or fails by time.
---
--- Run it with `nvim --clean -l tests/neovim/benchmark.lua`.

local here = vim.fs.dirname(vim.fs.abspath(arg[0]))
package.path = vim.fs.joinpath(here, '?.lua') .. ';' .. package.path
local World = require('client.world')

local SAMPLES = 400

---@param values number[]
---@param share number
---@return number
local function quantile(values, share)
  table.sort(values)
  return values[math.max(math.ceil(#values * share), 1)]
end

--- Prints a line of the table; where there is a budget, the slowest twentieth has to be within it.
---@param name string
---@param values number[]
---@param budget number? in milliseconds
local function report(name, values, budget)
  local slow = quantile(values, 0.95)
  local times = { quantile(values, 0.5), slow, quantile(values, 1) }
  local line = ('%-58s median %7.2f ms   p95 %7.2f ms   max %7.2f ms'):format(name, unpack(times))
  if budget then
    line = ('%s  p95 %g ms  %s'):format(line, budget, slow <= budget and 'ok' or 'OVER')
  end
  io.stdout:write(line .. '\n')
end

--- Milliseconds that pass until Neovim answers, many times.
---@return number[]
local function latencies(world)
  local values = {}
  for number = 1, SAMPLES do
    local start = vim.uv.hrtime()
    world:lua('return 1')
    values[number] = (vim.uv.hrtime() - start) / 1e6
    vim.uv.sleep(3)
  end
  return values
end

local function loading()
  local world = World.new()
  world:start({})
  local values = world:lua(
    [[
      local path = ...
      local values = {}
      for number = 1, 100 do
        vim.g.loaded_kode = nil
        local start = vim.uv.hrtime()
        dofile(path)
        values[number] = (vim.uv.hrtime() - start) / 1e6
      end
      return values
    ]],
    World.plugin .. '/plugin/kode.lua'
  )
  report('plugin/kode.lua, before the first use', values, 2)
  world:close()
end

--- A Neovim with a transcript of this many lines, without a server, into which an answer streams on demand.
local function with_transcript(lines)
  local world = World.new()
  World.write(world:path('a.txt'), 'one\n')
  world:start({ 'a.txt' }, { transcript = { max_items = 100000 } })
  local took = world:lua(
    [[
      local wanted = ...
      local nothing = function() end
      local connection = {
        status = 'ready', root = '/project', sessions = {}, client = nothing, ask = nothing, request = nothing,
      }
      local items = {}
      local function item(body)
        local number = #items + 1
        items[number] = { itemId = 'item' .. number, turnId = 'turn', timestamp = '2025-01-01T00:00:00Z', body = body }
      end
      local count = 1
      while count < wanted do
        item({ type = 'userMessage', text = 'Please change something in `src/main.rs`.' })
        item({ type = 'agentMessage', complete = true, interrupted = false, text =
          'I look at it:\n\n- one *thing*\n- another\n\n```lua\nlocal x = 1\nreturn x\n```\n\nAnd that is it.' })
        item({ type = 'toolCall', callId = 'call' .. #items, name = 'Read', title = 'Read src/main.rs', input = {},
          state = 'COMPLETED', display = '', audit = {} })
        count = count + 17
      end
      item({ type = 'agentMessage', complete = false, interrupted = false, text = '' })
      session = require('kode.session').new({
        sessionId = 'ses', title = 'Benchmark', bookmark = { seq = 0 }, state = 'WORKING', mode = 'default',
        model = { name = 'main' }, items = items, moreItems = false, pendingPermissions = {}, queue = {},
      }, 100000)
      local surfaces = require('kode.surface')
      surfaces.watch(connection, session)
      local surface = surfaces.all().ses
      local start = vim.uv.hrtime()
      surface:buffers()
      local took = (vim.uv.hrtime() - start) / 1e6
      require('kode.layout').open(surface)
      vim.cmd.wincmd('t')
      local last, seq = items[#items].itemId, 0
      -- Processor time of one update: what others do on the machine is not in it.
      updates = {}
      local draw = surface.transcript.draw
      surface.transcript.draw = function(self)
        local begin = os.clock()
        draw(self)
        table.insert(updates, (os.clock() - begin) * 1000)
      end
      function stream()
        -- 200 pieces a second, and the screen computed as often as a terminal shows it.
        local timer, redraw = vim.uv.new_timer(), vim.uv.new_timer()
        timer:start(0, 5, vim.schedule_wrap(function()
          seq = seq + 1
          session:apply({
            sessionId = 'ses', bookmark = { seq = seq }, channel = 'progress',
            event = { type = 'text_chunk', itemId = last, text = seq % 12 == 0 and 'word.\n\n' or 'word ' },
          })
        end))
        redraw:start(0, 16, vim.schedule_wrap(function() vim.cmd.redraw() end))
      end
      return { took, vim.api.nvim_buf_line_count(surface.transcript.buffer) }
    ]],
    lines
  )
  return world, took
end

--- A turn of the agent that edits fifty files, of which this Neovim has loaded some.
---@param loaded integer
local function fifty_files(loaded)
  local world = World.new()
  local reads, edits, open = {}, {}, {}
  for number = 1, 50 do
    local name = ('file%d.txt'):format(number)
    World.write(world:path(name), ('same\n'):rep(200) .. 'old\n')
    reads[number] = { type = 'tool_use', name = 'Read', input = { file_path = '{{cwd}}/' .. name } }
    edits[number] = {
      type = 'tool_use',
      name = 'Edit',
      input = { file_path = '{{cwd}}/' .. name, old_string = 'old', new_string = 'new' },
    }
    if number <= loaded then
      open[number] = name
    end
  end
  World.write(world:path('mine.txt'), 'mine\n')
  world:serve({ { content = reads }, { content = edits }, World.say('Done.') })
  world:start({ 'mine.txt', unpack(open) })
  world:lua([[
    vim.cmd('silent! bufdo edit')
    vim.cmd.buffer('mine.txt')
    ended = false
    vim.api.nvim_create_autocmd('User', { pattern = 'KodeDone', callback = function() ended = true end })
    require('kode.surface').with(function(surface)
      surface:ask('agent/session/configure', { mode = 'acceptEdits' }, function() surface:send('go') end)
    end)
  ]])
  local values, is_done = {}, false
  local begin = vim.uv.hrtime()
  repeat
    local start = vim.uv.hrtime()
    is_done = world:lua('return ended')
    values[#values + 1] = (vim.uv.hrtime() - start) / 1e6
    vim.uv.sleep(3)
  until is_done
  report(('50 files edited, %d of them loaded: the whole turn'):format(loaded), { (vim.uv.hrtime() - begin) / 1e6 })
  report(('50 files edited, %d of them loaded: Neovim answers'):format(loaded), values)
  world:close()
end

io.stdout:write('the plugin' .. (' '):rep(108) .. 'budget\n')
loading()
local floor = World.new()
floor:start({})
report('Neovim answers, nothing going on (floor)', latencies(floor))
floor:close()
for _, lines in ipairs({ 100, 1000, 10000, 50000 }) do
  local world, took = with_transcript(lines)
  report(('%d lines drawn at once'):format(took[2]), { took[1] })
  report(('%d lines, nothing going on'):format(took[2]), latencies(world))
  world:lua('stream()')
  report(('%d lines, 200 pieces a second'):format(took[2]), latencies(world), 10)
  report(('%d lines, one update, processor time'):format(took[2]), world:lua('return updates'))
  world:close()
end
fifty_files(0)
fifty_files(50)
