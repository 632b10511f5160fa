--- `:Kode` and its sub-commands.
---
--- Rule: the table is the command: names, descriptions and completions. A sub-command sends an intent; the server decides.

local api = vim.api
local common = require('kode.command_common')
local surface_of = require('kode.surface')
local fixed, say = common.fixed, common.say

---@class kode.CommandCall
---@field words string[] The words after the name.
---@field text string The same as it was written.
---@field range? { first: integer, last: integer } Lines from 1, where a range was given.
---@field bang boolean

---@class kode.SubCommand
---@field text string What it does, for `:Kode help`.
---@field run fun(call: kode.CommandCall)
---@field complete? fun(words: string[]): string[]

local M = {}

local modes = { 'default', 'acceptEdits', 'plan', 'dontAsk', 'bypassPermissions', 'approval', 'readonly' }
local efforts = { 'auto', 'low', 'medium', 'high' }
local layouts = { 'split', 'float', 'tab', 'current' }

--- The connection of the current buffer's project; in the windows of a conversation, that of the conversation.
---@return kode.Connection
local function connection()
  local connections = require('kode.connection')
  local bufnr = api.nvim_get_current_buf()
  local surface = surface_of.current()
  local is_own = surface and (vim.bo[bufnr].buftype ~= '' or api.nvim_buf_get_name(bufnr) == '')
  if surface and (is_own or connections.root(bufnr) == surface.connection.root) then
    return surface.connection
  end
  return connections.get(connections.root(bufnr))
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

---@param key "mode"|"effort"|"model"|"sandbox"
---@param choose fun(surface: kode.Surface, done: fun(value: string))
---@param known? string[] The values that there are.
---@return fun(call: kode.CommandCall)
local function configure(key, choose, known)
  return function(call)
    surface_of.with(function(surface)
      local function set(value)
        surface:ask('agent/session/configure', { [key] = value }, function(now)
          local shown = key == 'model' and now.model.name or now[key] or (key == 'sandbox' and 'default' or 'auto')
          say(('%s %s'):format(key, shown))
        end)
      end
      local value = call.words[1]
      if value and known and not vim.list_contains(known, value) then
        return vim.notify(('kode: no %s `%s`: %s'):format(key, value, table.concat(known, ', ')), vim.log.levels.ERROR)
      elseif value then
        return set(value)
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
for _, group in ipairs({ 'review', 'parts', 'about' }) do
  for name, command in pairs(require('kode.command_' .. group)) do
    commands[name] = command
  end
end

commands.open = {
  text = 'open the conversation: split, float, tab or current',
  complete = fixed(layouts),
  run = function(call)
    local layout = call.words[1]
    if not require('kode.layout').is_layout(layout) then
      local message = ('kode: no layout `%s`: %s'):format(layout, table.concat(layouts, ', '))
      return vim.notify(message, vim.log.levels.ERROR)
    end
    surface_of.with(function(surface)
      require('kode.layout').open(surface, layout)
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

--- Starts a conversation and opens it.
---@param text string Its first prompt; none if empty.
---@param how? kode.NewSessionParams
local function begin(text, how)
  connection():new_session(function(session)
    local surface = surface_of.all()[session.id]
    surface_of.use(surface)
    require('kode.layout').open(surface)
    if text ~= '' then
      surface:send(text)
    end
  end, nil, how)
end

commands.new = {
  text = 'start a new conversation',
  run = function(call)
    begin(call.text)
  end,
}

commands.worktree = {
  text = 'show the git worktree of the conversation; `merge` it into the workspace, or start a `new` one',
  complete = fixed({ 'new', 'merge' }),
  run = function(call)
    local rest = call.text:match('^new%f[%s%z]%s*(.*)$')
    if not rest then
      return surface_of.with(function(surface)
        surface:send(vim.trim('/worktree ' .. call.text))
      end)
    end
    begin(rest, { worktree = true })
  end,
}

commands.sessions = {
  text = 'choose a conversation; with words, one that has them',
  run = function(call)
    local server = connection()
    local pick = require('kode.pick_sessions')
    if call.text ~= '' then
      return pick.search(server, call.text, function(id)
        open_session(server, id)
      end)
    end
    pick.session(server, { title = 'Conversations', actions = true }, function(id)
      open_session(server, id)
    end)
  end,
}

commands.resume = {
  text = 'resume the conversation used last',
  run = function()
    local server = connection()
    server:ask('agent/session/list', { limit = 1 }, function(result)
      if not result.sessions[1] then
        return say('no conversation in this folder yet')
      end
      open_session(server, result.sessions[1].sessionId)
    end)
  end,
}

commands.fork = {
  text = 'fork this conversation at the item under the cursor',
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
  text = 'archive the conversation',
  run = function()
    surface_of.with(function(surface)
      surface:ask('agent/session/archive', { archived = true }, function()
        say('archived; :Kode sessions lists the others')
      end)
    end)
  end,
}

commands.delete = {
  text = 'choose a conversation and delete it for good',
  run = function()
    local server = connection()
    local pick = require('kode.pick_sessions')
    pick.session(server, { archived = true, title = 'Delete a conversation' }, function(_, session)
      pick.delete(server, assert(session))
    end)
  end,
}

commands.takeover = {
  text = 'continue a session of another window here; force: even while a turn runs there',
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
  text = 'send a prompt to the running turn now',
  run = function(call)
    send(call, 'steer')
  end,
}

commands.btw = {
  text = 'ask a side question: answered at once in a float, kept nowhere',
  run = function(call)
    surface_of.with(function(surface)
      if call.text ~= '' then
        return require('kode.aside').ask(surface, call.text)
      end
      vim.ui.input({ prompt = 'Side question: ' }, function(question)
        if question and question ~= '' then
          require('kode.aside').ask(surface, question)
        end
      end)
    end)
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
  text = 'stop the turn; the queue stays',
  run = function()
    surface_of.with(function(surface)
      surface:stop()
    end)
  end,
}

commands.background = {
  text = 'move the running command to the background, where it runs on',
  run = function()
    surface_of.with(function(surface)
      local call = surface.session:running_command()
      if not call then
        return say('no command runs now; :Kode tasks shows those in the background')
      end
      surface:ask('agent/tasks/background', { callId = call.callId }, function(result)
        say(('moved to the background as %s; :Kode tasks shows its output'):format(result.taskId))
      end)
    end)
  end,
}

commands.queue = {
  text = 'change the queue',
  run = function()
    surface_of.with(function(surface)
      require('kode.pick').queue(surface)
    end)
  end,
}

commands.permission = {
  text = 'answer a permission prompt; rules: list and remove rules',
  complete = fixed({ 'rules' }),
  run = function(call)
    surface_of.with(function(surface)
      if call.words[1] == 'rules' then
        return require('kode.pick_server').rules(surface)
      end
      require('kode.pick').permission(surface)
    end)
  end,
}

for name, text in pairs({ allow = 'allow the oldest prompt once', deny = 'deny the oldest prompt; with words: and say why' }) do
  commands[name] = {
    text = text,
    run = function(call)
      local surface = surface_of.current() or surface_of.latest()
      if not surface then
        return say('nothing waits for you')
      end
      local prompt = surface.session.permissions[1]
      if prompt and name == 'deny' and call.text ~= '' then
        return surface:respond(prompt, { decision = 'deny', feedback = call.text })
      end
      surface:quick_answer(name --[[@as "allow"|"deny"]])
    end,
  }
end

commands.answer = {
  text = 'answer a question or a plan',
  run = function()
    surface_of.with(function(surface)
      require('kode.pick').question(surface)
    end)
  end,
}

commands.mode = {
  text = 'choose what the agent may do unasked',
  complete = fixed(modes),
  run = configure('mode', choose_of(modes, 'Mode'), modes),
}

commands.effort = {
  text = 'choose how hard the model thinks',
  complete = fixed(efforts),
  run = configure('effort', choose_of(efforts, 'Effort'), efforts),
}

commands.sandbox = {
  text = 'choose the sandbox profile for the commands of the conversation',
  run = configure('sandbox', function(surface, done)
    surface:ask('agent/session/configure', {}, function(now)
      local lines = {} ---@type table<string, string>
      local names = vim.tbl_map(function(profile)
        lines[profile.name] = profile.description
        return profile.name
      end, now.sandboxProfiles)
      require('kode.pick').select(names, 'Sandbox', function(name)
        return ('%s: %s'):format(name, lines[name])
      end, done)
    end)
  end),
}

commands.model = {
  text = 'choose a model',
  complete = function()
    local surface = surface_of.current()
    return require('kode.models').names(surface and surface.connection)
  end,
  run = configure('model', function(surface, done)
    require('kode.pick_server').model(surface, done)
  end),
}

commands.setup = {
  text = 'set up a model: a provider, a key, a trial request',
  run = function()
    surface_of.with(function(surface)
      require('kode.setup_model').run(surface.connection, function(profile)
        surface:ask('agent/session/configure', { model = profile }, function(now)
          say('model ' .. now.model.name)
        end)
      end)
    end)
  end,
}

commands.compact = {
  text = 'compact the conversation; with words: what to keep above all',
  run = function(call)
    surface_of.with(function(surface)
      surface:ask('agent/session/compact', { focus = call.text ~= '' and call.text or nil })
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
  text = 'restart the server; stop: only stop it',
  complete = fixed({ 'stop' }),
  run = function(call)
    connection():restart(call.words[1] == 'stop')
  end,
}

commands.trace = {
  text = 'restart the server with a verbose log; off: with its usual log',
  complete = fixed({ 'off' }),
  run = function(call)
    connection():trace(call.words[1] ~= 'off')
  end,
}

commands.help = {
  text = 'list the sub-commands',
  run = function()
    local lines = {}
    for name, command in vim.spairs(commands) do
      lines[#lines + 1] = ('%-12s %s'):format(name, command.text)
    end
    require('kode.scratch').float(lines, { title = ':Kode' })
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
      ('kode: no sub-command `%s` (:Kode help; `:Kode send …` sends a prompt)'):format(name),
      vim.log.levels.ERROR
    )
  end
  command.run({ words = vim.split(rest, '%s+', { trimempty = true }), text = rest, range = range, bang = false })
end

--- Completes `:Kode`.
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
