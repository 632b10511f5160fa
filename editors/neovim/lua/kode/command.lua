--- `:Kode` and its sub-commands.
---
--- Rule: the table is the command: names, what they do, and what completes after them. A sub-command only says what the user
--- wants; what comes of it is the server's to decide.

local api = vim.api
local surface_of = require('kode.surface')

---@class kode.CommandCall
---@field words string[] What stands after the name.
---@field text string The same as it was written.
---@field range? { first: integer, last: integer } The lines, where a range was given.
---@field bang boolean

---@class kode.SubCommand
---@field text string What it does, for people.
---@field run fun(call: kode.CommandCall)
---@field complete? fun(words: string[]): string[]

local M = {}

local modes = { 'default', 'acceptEdits', 'plan', 'dontAsk', 'bypassPermissions', 'approval', 'readonly' }
local efforts = { 'auto', 'low', 'medium', 'high' }
local layouts = { 'split', 'float', 'tab', 'current' }

---@param message string
local function say(message)
  vim.notify('kode: ' .. message, vim.log.levels.INFO)
end

---@return kode.Connection
local function connection()
  local connections = require('kode.connection')
  local surface = surface_of.current()
  return surface and surface.connection or connections.get(connections.root(api.nvim_get_current_buf()))
end

---@param list string[]
---@return fun(): string[]
local function fixed(list)
  return function()
    return list
  end
end

---@param id kode.SessionId
---@param layout? string
local function open_session(server, id, layout)
  server:load(id, function(session)
    local surface = surface_of.all()[session.id]
    surface_of.use(surface)
    require('kode.layout').open(surface, layout)
  end)
end

--- Opens the quickfix list with all changes to review, or the location list with those of the current file.
---@param surface kode.Surface
---@param only_file? boolean
function M.review(surface, only_file)
  local window = api.nvim_get_current_win()
  local bufnr = only_file and api.nvim_get_current_buf() or nil
  require('kode.review').list(surface, bufnr, function(entries)
    if #entries == 0 then
      return say('there is nothing to review')
    end
    local what = { title = 'Kode: changes to review', items = entries }
    if not only_file then
      vim.fn.setqflist({}, ' ', what)
    elseif api.nvim_win_is_valid(window) then
      vim.fn.setloclist(window, {}, ' ', what)
    end
    -- Whoever has gone elsewhere meanwhile stays there.
    if api.nvim_get_current_win() == window then
      vim.cmd(only_file and 'lopen' or 'copen')
    end
  end)
end

---@param call kode.CommandCall
---@return kode.InputPart[]
local function parts(call)
  local selection = call.range and require('kode.context').selection(call.range.first, call.range.last)
  return selection and { selection } or {}
end

---@param call kode.CommandCall
---@param delivery? kode.Delivery
local function send(call, delivery)
  local given = parts(call)
  surface_of.with(function(surface)
    if call.text ~= '' then
      return surface:send(call.text, { delivery = delivery, parts = given })
    end
    for _, part in ipairs(given) do
      surface:attach(part)
    end
    require('kode.layout').open(surface)
  end)
end

---@param what "keep"|"undo"
---@return fun(call: kode.CommandCall)
local function decide(what)
  return function(call)
    local review = require('kode.review')
    local words = {}
    for _, word in ipairs(call.words) do
      words[word] = true
    end
    for _, reach in ipairs({ 'file', 'turn', 'all' }) do
      if words[reach] then
        local surface = surface_of.current()
        if not surface then
          return say('there is no session')
        end
        return review.resolve_all(what, reach, surface, words.force)
      end
    end
    local range = call.range
    ---@type integer
    local first = range and range.first or api.nvim_win_get_cursor(0)[1]
    ---@type integer
    local last = range and range.last or first
    review.resolve_rows(what, first - 1, last - 1, words.force == true)
  end
end

---@param key "mode"|"effort"|"model"
---@param choose fun(surface: kode.Surface, done: fun(value: string))
---@return fun(call: kode.CommandCall)
local function configure(key, choose)
  return function(call)
    surface_of.with(function(surface)
      local function set(value)
        surface:ask('agent/session/configure', { [key] = value }, function(now)
          local shown = key == 'model' and now.model.name or now[key] or 'auto'
          say(('%s: %s'):format(key, shown))
        end)
      end
      if call.words[1] then
        return set(call.words[1])
      end
      choose(surface, set)
    end)
  end
end

---@param list string[]
---@param prompt string
local function choose_of(list, prompt)
  return function(_, done)
    require('kode.pick').select(list, prompt, tostring, done)
  end
end

---@param lines string[]
---@param title string
---@param filetype? string
local function show(lines, title, filetype)
  require('kode.scratch').float(lines, { title = title, filetype = filetype })
end

--- What the context window holds, in lines.
---@param use kode.ContextUse
---@return string[]
local function context_lines(use)
  local lines = {
    ('%d of %d tokens (%s), %d free, %d kept for the answer'):format(
      use.tokens,
      use.window,
      use.source,
      use.free,
      use.reserved
    ),
    '',
  }
  local names = vim.tbl_keys(use.parts)
  table.sort(names, function(a, b)
    return use.parts[a] > use.parts[b]
  end)
  for _, name in ipairs(names) do
    lines[#lines + 1] = ('%10d  %s'):format(use.parts[name], name:gsub('%u', ' %0'):lower())
  end
  return lines
end

---@param session kode.Session
---@return string[]
local function todo_lines(session)
  local marks = { pending = '[ ]', in_progress = '[~]', completed = '[x]' }
  return vim.tbl_map(function(todo)
    return ('%s %s'):format(marks[todo.status] or '[?]', todo.content)
  end, session.todos)
end

--- The item that the cursor is on in a transcript, else the last prompt.
---@param surface kode.Surface
---@return kode.ItemId?
local function item_here(surface)
  local transcript = require('kode.transcript').of(api.nvim_get_current_buf())
  local block = transcript and transcript:block_at(api.nvim_win_get_cursor(0)[1] - 1)
  if block then
    return block.item.itemId
  end
  return surface.session.items[#surface.session.items] and surface.session.items[#surface.session.items].itemId
end

---@type table<string, kode.SubCommand>
local commands = {}
M.commands = commands

commands.open = {
  text = 'open the conversation: split, float, tab or current',
  complete = fixed(layouts),
  run = function(call)
    surface_of.with(function(surface)
      require('kode.layout').open(surface, call.words[1])
    end)
  end,
}

commands.toggle = {
  text = 'open or close the conversation',
  complete = fixed(layouts),
  run = function(call)
    if require('kode.layout').view() then
      return require('kode.layout').close()
    end
    commands.open.run(call)
  end,
}

commands.close = {
  text = 'close the windows; the conversation goes on',
  run = function()
    require('kode.layout').close()
  end,
}

commands.new = {
  text = 'begin a new conversation',
  run = function(call)
    connection():new_session(function(session)
      local surface = surface_of.all()[session.id]
      surface_of.use(surface)
      require('kode.layout').open(surface)
      if call.text ~= '' then
        surface:send(call.text)
      end
    end)
  end,
}

commands.sessions = {
  text = 'choose a conversation; with words, one in which they stand',
  run = function(call)
    local server = connection()
    local pick = require('kode.pick')
    if call.text ~= '' then
      return pick.search(server, call.text, function(id)
        open_session(server, id)
      end)
    end
    pick.session(server, { prompt = 'Conversations' }, function(session)
      open_session(server, session.sessionId)
    end)
  end,
}

commands.resume = {
  text = 'go on with the conversation that was used last',
  run = function()
    local server = connection()
    server:ask('agent/session/list', { limit = 1 }, function(result)
      if not result.sessions[1] then
        return say('there is no conversation in this folder yet')
      end
      open_session(server, result.sessions[1].sessionId)
    end)
  end,
}

commands.fork = {
  text = 'begin a conversation with this one up to the item under the cursor',
  run = function()
    surface_of.with(function(surface)
      local server = surface.connection
      local params = { sessionId = surface.session.id, afterItemId = item_here(surface) }
      server:ask('agent/session/fork', params, function(result)
        open_session(server, result.sessionId)
      end)
    end)
  end,
}

commands.rename = {
  text = 'give the conversation a title',
  run = function(call)
    surface_of.with(function(surface)
      local function rename(title)
        if title and title ~= '' then
          surface:ask('agent/session/rename', { title = title })
        end
      end
      if call.text ~= '' then
        return rename(call.text)
      end
      vim.ui.input({ prompt = 'Title: ', default = surface.session.title }, rename)
    end)
  end,
}

commands.archive = {
  text = 'put the conversation away',
  run = function()
    surface_of.with(function(surface)
      surface:ask('agent/session/archive', { archived = true }, function()
        say('put away; :Kode sessions lists those in use')
      end)
    end)
  end,
}

commands.delete = {
  text = 'choose a conversation and delete it for good',
  run = function()
    local server = connection()
    require('kode.pick').session(server, { archived = true, prompt = 'Delete for good' }, function(session)
      server:ask('agent/session/delete', { sessionId = session.sessionId }, function()
        surface_of.forget(session.sessionId)
        say('deleted: ' .. session.title)
      end)
    end)
  end,
}

commands.takeover = {
  text = 'go on here with a conversation that is open elsewhere (force: also while a turn runs there)',
  complete = fixed({ 'force' }),
  run = function(call)
    surface_of.with(function(surface)
      surface:ask('agent/session/takeOver', { force = call.words[1] == 'force' }, function(snapshot)
        surface.session:reset(snapshot)
      end)
    end)
  end,
}

commands.send = {
  text = 'send a prompt, with the lines of the range',
  run = function(call)
    send(call)
  end,
}

commands.steer = {
  text = 'tell it the running turn now',
  run = function(call)
    send(call, 'steer')
  end,
}

commands.quickfix = {
  text = 'send a prompt with the quickfix list',
  run = function(call)
    local part = require('kode.context').quickfix()
    if not part then
      return say('the quickfix list is empty')
    end
    surface_of.with(function(surface)
      surface:send(call.text, { parts = { part } })
    end)
  end,
}

commands.stop = {
  text = 'stop the turn; what waits stays',
  run = function()
    surface_of.with(function(surface)
      surface:stop()
    end)
  end,
}

commands.queue = {
  text = 'change, drop or send what waits',
  run = function()
    surface_of.with(function(surface)
      require('kode.pick').queue(surface)
    end)
  end,
}

commands.review = {
  text = 'put all changes to review into the quickfix list; file: those of this file into the location list',
  complete = fixed({ 'file' }),
  run = function(call)
    surface_of.with(function(surface)
      M.review(surface, call.words[1] == 'file')
    end)
  end,
}

commands.comment = {
  text = 'comment on the line or the range; without words it asks, and no words at all take a comment away',
  run = function(call)
    local row = api.nvim_win_get_cursor(0)[1]
    local range = call.range or { first = row, last = row }
    surface_of.with(function(surface)
      require('kode.comments').write(surface, range.first - 1, range.last - 1, call.text)
    end)
  end,
}

commands.comments = {
  text = 'put the comments into the quickfix list; send: all of them as one prompt; drop: take them away',
  complete = fixed({ 'send', 'drop' }),
  run = function(call)
    surface_of.with(function(surface)
      local comments = require('kode.comments')
      if call.words[1] == 'send' then
        return comments.send(surface, (call.text:gsub('^send%s*', '')))
      elseif call.words[1] == 'drop' then
        return comments.drop(surface)
      end
      if comments.quickfix(surface) == 0 then
        return say('there are no comments; :Kode comment writes one')
      end
      vim.cmd.copen()
    end)
  end,
}

---@param surface kode.Surface
---@param part? kode.InputPart
---@param problem? string
local function attach(surface, part, problem)
  if not part then
    return vim.notify('kode: ' .. problem, vim.log.levels.ERROR)
  end
  surface:attach(part)
  say(('%s goes with the next prompt'):format(require('kode.attach').label(part)))
end

commands.attach = {
  text = 'let a file or picture go with the next prompt',
  complete = function(words)
    return vim.fn.getcompletion(words[#words], 'file')
  end,
  run = function(call)
    if call.text == '' then
      return say('which file? :Kode paste takes the picture in the clipboard')
    end
    surface_of.with(function(surface)
      attach(surface, require('kode.attach').file(call.text))
    end)
  end,
}

commands.paste = {
  text = 'let the picture in the clipboard go with the next prompt',
  run = function()
    surface_of.with(function(surface)
      require('kode.attach').clipboard(function(part, problem)
        attach(surface, part, problem)
      end)
    end)
  end,
}

commands.detach = {
  text = 'choose something that goes with the next prompt, and leave it out',
  run = function()
    surface_of.with(function(surface)
      require('kode.pick').select(surface.parts, 'Leave out', require('kode.attach').label, function(part)
        surface:detach(part)
      end)
    end)
  end,
}

commands.diff = {
  text = 'show the changes of this file as a diff that can be edited',
  run = function()
    local surface = surface_of.current()
    local anchors = require('kode.review').at(api.nvim_get_current_buf(), 0, api.nvim_buf_line_count(0))
    if anchors[1] then
      return require('kode.diff').file(anchors[1].surface, vim.uri_from_bufnr(0))
    end
    local prompt = surface and surface.session.permissions[1]
    if surface and prompt and prompt.preview.type == 'diff' then
      return require('kode.diff').proposal(surface, prompt)
    end
    say('there is no change of the agent in this buffer')
  end,
}

local reaches = { 'file', 'turn', 'all', 'force' }

commands.keep = {
  text = 'keep the change under the cursor or in the range; or: file, turn, all',
  complete = fixed(reaches),
  run = decide('keep'),
}

commands.undo = {
  text = 'undo the change under the cursor or in the range; or: file, turn, all; force: where you wrote into it, too',
  complete = fixed(reaches),
  run = decide('undo'),
}

commands.revert = {
  text = 'take the newest keep, undo or restore back',
  run = function()
    surface_of.with(require('kode.review').revert)
  end,
}

commands.next = {
  text = 'go to the next change',
  run = function()
    require('kode.review').jump(1)
  end,
}

commands.previous = {
  text = 'go to the change before',
  run = function()
    require('kode.review').jump(-1)
  end,
}

commands.restore = {
  text = 'go back to before a prompt',
  run = function()
    surface_of.with(function(surface)
      local pick = require('kode.pick')
      pick.checkpoint(surface, function(checkpoint)
        pick.restore(surface, checkpoint)
      end)
    end)
  end,
}
commands.checkpoints = { text = 'the same as restore', run = commands.restore.run }

commands.permission = {
  text = 'answer what is asked; rules: list and remove rules',
  complete = fixed({ 'rules' }),
  run = function(call)
    surface_of.with(function(surface)
      if call.words[1] == 'rules' then
        return require('kode.pick').rules(surface)
      end
      require('kode.pick').permission(surface)
    end)
  end,
}

commands.answer = {
  text = 'answer a question or a plan',
  run = function()
    surface_of.with(function(surface)
      require('kode.pick').question(surface)
    end)
  end,
}

commands.mode = {
  text = 'say what the agent may do unasked',
  complete = fixed(modes),
  run = configure('mode', choose_of(modes, 'Mode')),
}

commands.effort = {
  text = 'say how hard the model thinks',
  complete = fixed(efforts),
  run = configure('effort', choose_of(efforts, 'Effort')),
}

commands.model = {
  text = 'choose a model',
  run = configure('model', function(surface, done)
    require('kode.pick').model(surface, done)
  end),
}

commands.context = {
  text = 'show how full the context window is, and of what',
  run = function()
    surface_of.with(function(surface)
      surface:ask('agent/context/get', {}, function(use)
        show(context_lines(use), 'Context')
      end)
    end)
  end,
}

commands.compact = {
  text = 'make room in the context window; words say what counts most',
  run = function(call)
    surface_of.with(function(surface)
      surface:ask('agent/session/compact', { focus = call.text ~= '' and call.text or nil })
    end)
  end,
}

commands.todos = {
  text = 'show the list of things to do',
  run = function()
    surface_of.with(function(surface)
      local lines = todo_lines(surface.session)
      show(#lines > 0 and lines or { 'There is nothing to do.' }, 'To do')
    end)
  end,
}

commands.tasks = {
  text = 'choose a command in the background and stop it',
  run = function()
    surface_of.with(function(surface)
      require('kode.pick').select(vim.tbl_values(surface.session.tasks), 'Stop', function(task)
        return require('kode.render').line(task.title)
      end, function(task)
        surface:ask('agent/tasks/stop', { taskId = task.taskId })
      end)
    end)
  end,
}

commands.usage = {
  text = 'show tokens and cost',
  run = function()
    surface_of.with(function(surface)
      surface:ask('agent/usage/get', {}, function(usage)
        local lines = { ('known cost: $%.4f'):format(usage.knownCost) }
        for _, model in ipairs(usage.models) do
          lines[#lines + 1] = ('%s: %d calls, %d tokens in, %d out'):format(
            model.model,
            model.calls,
            model.usage.inputTokens + model.usage.cacheReadTokens + model.usage.cacheWriteTokens,
            model.usage.outputTokens
          )
        end
        show(lines, 'Usage')
      end)
    end)
  end,
}

commands.trust = {
  text = 'look at what files of the workspace ask for, and approve it',
  run = function()
    surface_of.with(function(surface)
      require('kode.pick').trust(surface)
    end)
  end,
}

commands.mcp = {
  text = 'look at the MCP servers, connect, switch on or off, sign in',
  run = function()
    surface_of.with(function(surface)
      require('kode.pick').mcp(surface)
    end)
  end,
}

commands.doctor = {
  text = 'say what the server finds on this machine',
  run = function()
    local cmd = require('kode.lsp').program() or 'kode-ls'
    if vim.fn.executable(cmd) == 0 then
      return vim.notify(('kode: `%s` cannot be run; see :help kode-install'):format(cmd), vim.log.levels.ERROR)
    end
    vim.system({ cmd, 'doctor' }, { text = true, timeout = 30000 }, function(result)
      vim.schedule(function()
        show(vim.split((result.stdout or '') .. (result.stderr or ''), '\n'), 'Doctor')
      end)
    end)
  end,
}

--- The newest file that the server logs to; nil when there is none.
---@return string?
local function server_log()
  local home = vim.env.KODE_LS_HOME or vim.fs.joinpath(vim.env.XDG_STATE_HOME or vim.fn.expand('~/.local/state'), 'kode-ls')
  local files = vim.fn.globpath(vim.fs.joinpath(home, 'log'), '*', false, true)
  table.sort(files)
  return files[#files]
end

commands.log = {
  text = "open the server's log; lsp: that of Neovim's client",
  complete = fixed({ 'lsp' }),
  run = function(call)
    local path = call.words[1] == 'lsp' and vim.lsp.log.get_filename() or server_log()
    if not path then
      return say('the server has logged nothing yet')
    end
    vim.cmd.sview({ args = { path }, magic = { file = false } })
    vim.cmd('normal! G')
  end,
}

commands.export = {
  text = 'open the conversation as a document: markdown or json',
  complete = fixed({ 'markdown', 'json' }),
  run = function(call)
    surface_of.with(function(surface)
      surface:ask('agent/session/export', { format = call.words[1] or 'markdown' }, function(result)
        local document = result.document
        local text = document.format == 'json' and vim.json.encode(document.session) or document.text
        vim.cmd.new()
        api.nvim_buf_set_lines(0, 0, -1, false, vim.split(text, '\n', { plain = true }))
        vim.bo.filetype = document.format == 'json' and 'json' or 'markdown'
        api.nvim_buf_set_name(0, vim.fs.joinpath(surface.connection.root, vim.fs.basename(result.fileName)))
      end)
    end)
  end,
}

commands.older = {
  text = 'show older messages',
  run = function()
    surface_of.with(function(surface)
      surface:older()
    end)
  end,
}

commands.restart = {
  text = 'start the server again; stop: only end it',
  complete = fixed({ 'stop' }),
  run = function(call)
    connection():restart(call.words[1] == 'stop')
  end,
}

commands.help = {
  text = 'list the sub-commands',
  run = function()
    local lines = {}
    for name, command in vim.spairs(commands) do
      lines[#lines + 1] = ('%-12s %s'):format(name, command.text)
    end
    show(lines, ':Kode')
  end,
}

--- Runs `:Kode`.
---@param args vim.api.keyset.create_user_command.command_args
function M.run(args)
  local range = args.range > 0 and { first = args.line1, last = args.line2 } or nil
  if args.bang then
    local call = { words = {}, text = args.args, range = range, bang = true }
    local given = parts(call)
    return surface_of.with(function(surface)
      surface.notify_done = true
      surface:send(args.args, { parts = given })
    end)
  end
  local name, rest = args.args:match('^(%S+)%s*(.*)$')
  if not name or not rest then
    return range and send({ words = {}, text = '', range = range, bang = false })
      or commands.toggle.run({ words = {}, text = '', bang = false })
  end
  local command = commands[name]
  if not command then
    return vim.notify(
      ('kode: there is no sub-command `%s`; :Kode help lists them, and `:Kode send %s` sends it as a prompt'):format(
        name,
        args.args
      ),
      vim.log.levels.ERROR
    )
  end
  command.run({ words = vim.split(rest, '%s+', { trimempty = true }), text = rest, range = range, bang = false })
end

--- What completes `:Kode`.
---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local words = vim.split(line:gsub('^.-Kode!?%s*', ''), '%s+')
  local list
  if #words <= 1 then
    list = vim.tbl_keys(commands)
    table.sort(list)
  else
    local command = commands[words[1]]
    list = command and command.complete and command.complete(words) or {}
  end
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, list)
end

return M
