--- One test's world: a project, a scripted model, and a Neovim with the plugin that is driven by keys.
---
--- Rule: the Neovim under test is a process of its own, driven as a person does it, by typed keys through its main loop; the
--- rest is only checked. Every wait is for something that happens.

local LIMIT = tonumber(vim.env.KODE_LS_WAIT_MS) or 30000

local here = vim.fs.dirname(vim.fs.abspath(debug.getinfo(1, 'S').source:sub(2)))
local root = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(here)))

---@class World
---@field folder string
---@field nvim integer
---@field env table<string, string>
local World = {}
World.__index = World

World.root = root
World.plugin = vim.fs.joinpath(root, 'editors/neovim')
World.program = vim.env.KODE_LS_BIN or vim.fs.joinpath(root, 'target/debug/kode-ls')

function World.wait_until(what, condition, limit)
  local problem
  local ok = vim.wait(limit or LIMIT, function()
    local held, result = pcall(condition)
    problem = not held and result or nil
    return held and result
  end, 10)
  if not ok then
    error(('waited in vain until %s%s'):format(what, problem and ': ' .. tostring(problem) or ''), 2)
  end
end

function World.write(path, text)
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  local file = assert(io.open(path, 'w'))
  file:write(text)
  file:close()
end

function World.read(path)
  local file = assert(io.open(path), path)
  local text = file:read('a')
  file:close()
  return text
end

function World.equal(actual, expected, what)
  if not vim.deep_equal(actual, expected) then
    error(('%s: %s instead of %s'):format(what, vim.inspect(actual), vim.inspect(expected)), 2)
  end
end

function World.new()
  local folder = assert(vim.uv.fs_realpath(vim.fs.dirname(vim.fn.tempname())))
  folder = assert(vim.uv.fs_mkdtemp(folder .. '/kode-XXXXXX'))
  vim.fn.mkdir(folder .. '/project/.git', 'p')
  return setmetatable({ folder = folder, jobs = {}, env = {} }, World)
end

function World:path(name)
  return self.folder .. '/project/' .. name
end

--- Serves a model: programs as the scripted model has them, or the steps that answer any prompt; with its quirks.
function World:serve(programs, quirks)
  if programs[1].content then
    programs = { { steps = programs } }
  end
  local script = self.folder .. '/script.json'
  World.write(script, vim.json.encode({ programs = programs, quirks = quirks }))
  local output = ''
  self.jobs[#self.jobs + 1] = vim.fn.jobstart({ World.program, 'scripted-model', '--script', script }, {
    on_stdout = function(_, data)
      output = output .. table.concat(data, '\n')
    end,
  })
  World.wait_until('the model listens', function()
    return output:find('\n') ~= nil
  end)
  self.model = vim.json.decode(output).listening
  self.env.ANTHROPIC_BASE_URL = self.model
  self.env.ANTHROPIC_API_KEY = 'test-key'
end

--- Opens a gate of the scripted model.
function World:release(gate)
  local address = self.model .. '/scripted/release/' .. gate
  local host, port, path = address:match('http://([%d.]+):(%d+)(/.*)')
  local done = false
  local socket = assert(vim.uv.new_tcp())
  socket:connect(host, tonumber(port), function(err)
    assert(not err, err)
    socket:write(('POST %s HTTP/1.1\r\nHost: %s:%s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'):format(path, host, port))
    socket:read_start(function(_, data)
      done = done or data ~= nil
    end)
  end)
  World.wait_until('the gate is open', function()
    return done
  end)
  socket:close()
end

--- Writes the configuration of the Neovim under test.
---@param columns integer
---@param lines integer
function World:configure(settings, columns, lines)
  local init = [[
    vim.opt.runtimepath:prepend(%q)
    if #vim.api.nvim_list_uis() == 0 then vim.o.columns, vim.o.lines = %d, %d end
    vim.o.shortmess = vim.o.shortmess .. 'I'
    vim.g.kode = vim.tbl_deep_extend('force', { cmd = { %q }, settle = 0, start_insert = false }, %s)
    told, asked, notified = {}, {}, {}
    vim.notify = function(text) table.insert(notified, text) end
    vim.api.nvim_create_autocmd('User', {
      pattern = 'KodeEvent',
      callback = function(event) table.insert(told, event.data) end,
    })
  ]]
  World.write(
    self.folder .. '/init.lua',
    init:format(World.plugin, columns, lines, World.program, vim.inspect(settings or {}))
  )
end

--- Starts the Neovim under test with the plugin, on some files of the project.
function World:start(files, settings)
  self:configure(settings, 120, 40)
  self:spawn(files)
end

--- The same in a terminal.
function World:start_terminal(files, columns, lines, settings)
  self:configure(settings, columns, lines)
  self:spawn_terminal(files, columns, lines)
end

--- The home folder of a Neovim of this world.
function World:environment()
  local env = vim.tbl_extend('error', self.env, {
    HOME = self.folder,
    KODE_LS_HOME = self.folder .. '/state',
  })
  for _, kind in ipairs({ 'CONFIG', 'DATA', 'STATE', 'CACHE' }) do
    env['XDG_' .. kind .. '_HOME'] = self.folder .. '/xdg'
  end
  return env
end

--- Starts a Neovim with the `init.lua` that is there.
function World:spawn(files)
  local env = self:environment()
  local command = { vim.v.progpath, '--headless', '--embed', '-n', '-i', 'NONE', '-u', self.folder .. '/init.lua' }
  vim.list_extend(command, files or {})
  self.nvim = vim.fn.jobstart(command, { rpc = true, cwd = self.folder .. '/project', env = env })
  self.jobs[#self.jobs + 1] = self.nvim
end

--- Starts a Neovim with the `init.lua` that is there in a terminal of tmux, whose screen shows what a list or message that
--- waits for a key shows.
function World:spawn_terminal(files, columns, lines)
  self.socket = self.folder .. '/tmux'
  local pipe = self.folder .. '/nvim'
  local command = { 'env' }
  for name, value in pairs(self:environment()) do
    table.insert(command, ('%s=%s'):format(name, value))
  end
  vim.list_extend(command, { vim.v.progpath, '-n', '-i', 'NONE', '--listen', pipe, '-u', self.folder .. '/init.lua' })
  vim.list_extend(command, files or {})
  local line = table.concat(vim.tbl_map(vim.fn.shellescape, command), ' ')
  local size = { '-x', tostring(columns), '-y', tostring(lines) }
  self:tmux({ '-f', '/dev/null', 'new-session', '-d', unpack(vim.list_extend(size, { '-c', self.folder .. '/project', line })) })
  World.wait_until('Neovim listens', function()
    self.nvim = vim.fn.sockconnect('pipe', pipe, { rpc = true })
    return self.nvim > 0
  end)
  self:wait_lua('Neovim has started', 'return vim.v.vim_did_enter == 1 and #vim.api.nvim_list_uis() == 1', true)
end

--- Gives the terminal another size.
function World:resize(columns, lines)
  self:tmux({ 'resize-window', '-x', tostring(columns), '-y', tostring(lines) })
  self:wait_lua('Neovim has the size', 'return { vim.o.columns, vim.o.lines }', { columns, lines })
end

function World:tmux(arguments)
  local result = vim.system(vim.list_extend({ 'tmux', '-S', self.socket }, arguments), { text = true }):wait()
  assert(result.code == 0, result.stderr)
  return result.stdout
end

--- The screen of the terminal, without blanks at the ends of lines.
function World:terminal_screen()
  return (self:tmux({ 'capture-pane', '-p' }):gsub(' +\n', '\n'))
end

function World:wait_terminal(...)
  local parts, seen = { ... }, nil
  local ok = pcall(World.wait_until, 'it is on the screen', function()
    seen = self:terminal_screen()
    return vim.iter(parts):all(function(part)
      return seen:find(part, 1, true) ~= nil
    end)
  end)
  if not ok then
    error(('the screen is\n%s\nwithout all of\n%s'):format(seen, vim.inspect(parts)), 2)
  end
  return seen
end

function World:lua(code, ...)
  -- While Neovim waits for a key, at its hit-enter prompt for example, it would never answer.
  World.wait_until('Neovim waits for no key', function()
    return not vim.rpcrequest(self.nvim, 'nvim_get_mode').blocking
  end)
  return vim.rpcrequest(self.nvim, 'nvim_exec_lua', code, { ... })
end

function World:type(keys)
  vim.rpcrequest(self.nvim, 'nvim_input', keys)
end

--- Types a command.
function World:command(command)
  self:type(':' .. command:gsub('<', '<lt>') .. '<CR>')
end

function World:mode()
  return vim.rpcrequest(self.nvim, 'nvim_get_mode').mode
end

--- The text of the buffer whose name ends so, or of the current one.
function World:text(name)
  return self:lua(
    [[
      local name = ...
      local bufnr = 0
      if name then
        for _, candidate in ipairs(vim.api.nvim_list_bufs()) do
          if vim.endswith(vim.api.nvim_buf_get_name(candidate), name) then bufnr = candidate end
        end
        assert(bufnr ~= 0, 'there is no buffer ' .. name)
      end
      return table.concat(vim.api.nvim_buf_get_lines(bufnr, 0, -1, true), '\n') .. '\n'
    ]],
    name
  )
end

function World:wait_text(text, name)
  local seen
  local ok = pcall(World.wait_until, 'the text is there', function()
    seen = self:text(name)
    return seen == text
  end)
  if not ok then
    error(('the buffer has\n%s\ninstead of\n%s'):format(seen, text), 2)
  end
end

--- The text of the transcript of the current session.
function World:transcript()
  return self:lua([[
    local surface = require('kode.surface').latest()
    if not surface or not surface.transcript then return '' end
    return table.concat(vim.api.nvim_buf_get_lines(surface.transcript.buffer, 0, -1, true), '\n') .. '\n'
  ]])
end

function World:wait_transcript(part)
  local seen
  local ok = pcall(World.wait_until, 'it is there', function()
    seen = self:transcript()
    return seen:find(part, 1, true) ~= nil
  end)
  if not ok then
    error(('the transcript has\n%s\nwithout\n%s\nmessages: %s'):format(
      seen, part, vim.inspect(self:lua('return notified'))), 2)
  end
end

--- Waits until a piece of Lua gives this in the Neovim under test.
function World:wait_lua(what, code, expected)
  local seen
  local ok = pcall(World.wait_until, what, function()
    seen = self:lua(code)
    return vim.deep_equal(seen, expected)
  end)
  if not ok then
    local told = vim.inspect(self:lua('return notified'))
    error(('waited in vain until %s: %s instead of %s; told was %s'):format(what, vim.inspect(seen), vim.inspect(expected), told), 2)
  end
end

--- Waits until the user got a message with this text.
function World:wait_told(part)
  World.wait_until('the user is told ' .. part, function()
    return self:lua('return table.concat(notified, "\\n")'):find(part, 1, true) ~= nil
  end)
end

--- Opens the conversation and waits until the cursor is in the prompt.
function World:open()
  self:command('Kode open')
  self:wait_lua('the conversation is open', 'return vim.bo.filetype', 'kodeprompt')
end

--- Types a prompt and sends it.
function World:send(text)
  self:type('i' .. text .. '<Esc><CR>')
end

--- Waits until something waits for the user.
function World:wait_asked()
  self:wait_lua('something is asked', "return require('kode').waiting() > 0", true)
end

--- The body of the newest request that the model got.
function World:newest_request()
  local address = self.model .. '/scripted/newest'
  return vim.system({ 'curl', '-s', address }, { text = true }):wait().stdout
end

--- Waits until this many turns have ended.
function World:wait_turns(count)
  World.wait_until(('%d turns have ended'):format(count), function()
    return self:lua([[
      local count = 0
      for _, data in ipairs(told) do
        if data.event.type == 'done' then count = count + 1 end
      end
      return count
    ]]) >= count
  end)
end

--- The screen as text, without blanks at the ends of lines.
function World:screen()
  return self:lua([[
    vim.cmd('redraw!')
    local lines = {}
    for row = 1, vim.o.lines do
      local cells = {}
      for column = 1, vim.o.columns do
        cells[column] = vim.fn.screenstring(row, column)
      end
      lines[row] = (table.concat(cells):gsub('%s+$', ''))
    end
    return table.concat(lines, '\n')
  ]])
end

function World:wait_screen(part)
  local seen
  local ok = pcall(World.wait_until, 'it is on the screen', function()
    seen = self:screen()
    return seen:find(part, 1, true) ~= nil
  end)
  if not ok then
    error(('the screen is\n%s\nwithout\n%s'):format(seen, part), 2)
  end
end

--- Keeps the screen as a file, where KODE_LS_SCREENSHOTS names a folder.
function World:shot(name)
  local folder = vim.env.KODE_LS_SCREENSHOTS
  if folder then
    World.write(vim.fs.joinpath(folder, name .. '.txt'), self:screen() .. '\n')
  end
end

--- Replaces the picker, as plugins do: what it is asked is kept until `answer` answers it.
function World:use_picker()
  self:lua([[
    vim.ui.select = function(items, options, choose)
      table.insert(asked, { items = items, options = options, choose = choose })
    end
  ]])
end

--- The text of the windows that float above the others and take no focus.
function World:about()
  return self:lua([[
    local text = ''
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      local place = vim.api.nvim_win_get_config(window)
      if place.relative ~= '' and not place.focusable then
        local bufnr = vim.api.nvim_win_get_buf(window)
        text = text .. table.concat(vim.api.nvim_buf_get_lines(bufnr, 0, -1, true), '\n') .. '\n'
      end
    end
    return text
  ]])
end

--- Waits for a question and answers it with the first choice whose title begins so; gives the question.
function World:answer(title)
  World.wait_until('something is asked', function()
    return self:lua('return #asked > 0')
  end)
  return self:lua(
    [[
      local title = ...
      local question = table.remove(asked, 1)
      local offered = {}
      for _, item in ipairs(question.items) do
        local text = question.options.format_item(item)
        table.insert(offered, text)
        if vim.startswith(text, title) then
          question.choose(item)
          return question.options.prompt
        end
      end
      error('offered were only ' .. vim.inspect(offered))
    ]],
    title
  )
end

function World:close()
  if self.socket then
    pcall(vim.fn.chanclose, self.nvim)
    vim.system({ 'tmux', '-S', self.socket, 'kill-server' }):wait()
  end
  for _, job in ipairs(self.jobs) do
    vim.fn.jobstop(job)
  end
  vim.fn.jobwait(self.jobs, LIMIT)
  vim.fn.delete(self.folder, 'rf')
end

function World.say(text)
  return { content = { { type = 'text', text = text } } }
end

function World.call(name, input)
  return { content = { { type = 'tool_use', name = name, input = input } } }
end

return World
