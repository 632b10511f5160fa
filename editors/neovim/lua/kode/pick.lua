--- Choosing among things: sessions, checkpoints, models, answers.
---
--- Rule: everything goes through `vim.ui.select` and `vim.ui.input`, so that whatever the user has put in their place is
--- used, and leaving a picker does nothing.

local scratch = require('kode.scratch')

local M = {}

--- Sessions that a picker asks for at a time.
local PAGE = 50

---@param text string
---@return string
local function line(text)
  return require('kode.render').line(text)
end

---@param items any[]
---@param prompt string
---@param format fun(item: any): string
---@param choose fun(item: any)
local function select(items, prompt, format, choose)
  if #items == 0 then
    return vim.notify('kode: there is nothing to choose', vim.log.levels.INFO)
  end
  vim.ui.select(items, { prompt = prompt, format_item = format, kind = 'kode' }, function(item)
    if item ~= nil then
      choose(item)
    end
  end)
end
M.select = select

--- Answers the oldest permission prompt that waits.
---@param surface kode.Surface
function M.permission(surface)
  local prompt = surface.session.permissions[1]
  if not prompt then
    return vim.notify('kode: nothing is asked', vim.log.levels.INFO)
  end
  local pending = require('kode.pending')
  local text = table.concat(pending.permission_lines(prompt), '\n')
  local choices = pending.permission_choices(prompt)
  -- The no comes first, so that a key that was meant for something else does not approve.
  table.sort(choices, function(a, b)
    local a_denies, b_denies = a.label:match('^Deny') ~= nil, b.label:match('^Deny') ~= nil
    if a_denies ~= b_denies then
      return a_denies
    end
    return a.key < b.key
  end)
  select(choices, text, function(choice)
    return choice.detail and ('%s: %s'):format(choice.label, line(choice.detail)) or choice.label
  end, function(choice)
    choice.act(surface)
  end)
end

---@param inquiry kode.Inquiry
---@param chosen string[]
---@param callback fun(answer: kode.QuestionAnswer)
local function inquire(inquiry, chosen, callback)
  local entries = {}
  for _, option in ipairs(inquiry.options) do
    entries[#entries + 1] = { option = option, is_chosen = vim.tbl_contains(chosen, option.label) }
  end
  entries[#entries + 1] = { words = true }
  if inquiry.multiSelect and #chosen > 0 then
    entries[#entries + 1] = { done = true }
  end
  select(entries, line(inquiry.question), function(entry)
    if entry.done then
      return 'That is all'
    elseif entry.words then
      return 'In my own words …'
    end
    local mark = inquiry.multiSelect and (entry.is_chosen and '[x] ' or '[ ] ') or ''
    local detail = entry.option.description ~= '' and ': ' .. line(entry.option.description) or ''
    return mark .. line(entry.option.label) .. detail
  end, function(entry)
    if entry.done then
      return callback({ labels = chosen })
    elseif entry.words then
      return vim.ui.input({ prompt = line(inquiry.question) .. ' ' }, function(words)
        if words and words ~= '' then
          callback({ labels = #chosen > 0 and chosen or nil, text = words })
        end
      end)
    elseif not inquiry.multiSelect then
      return callback({ labels = { entry.option.label } })
    end
    local now = vim.tbl_filter(function(label)
      return label ~= entry.option.label
    end, chosen)
    if not entry.is_chosen then
      now[#now + 1] = entry.option.label
    end
    inquire(inquiry, now, callback)
  end)
end

--- Answers a question, one inquiry after the other; the oldest that waits when none is named.
---@param surface kode.Surface
---@param question? kode.Question
function M.question(surface, question)
  question = question or surface.session.questions[1]
  if not question then
    return vim.notify('kode: nothing is asked', vim.log.levels.INFO)
  end
  local answers = {}
  local function go_on()
    local inquiry = question.questions[#answers + 1]
    if not inquiry then
      return surface:answer(question, answers)
    end
    inquire(inquiry, {}, function(answer)
      answers[#answers + 1] = answer
      go_on()
    end)
  end
  go_on()
end

--- Opens a plan to be changed; `:w` accepts it as it is then.
---@param surface kode.Surface
---@param question kode.Question
function M.plan(surface, question)
  local accepts = question.questions[1].options[2]
  if not accepts then
    return vim.notify('kode: this plan cannot be accepted', vim.log.levels.ERROR)
  end
  local bufnr = scratch.editor('plan', vim.split(question.plan or '', '\n', { plain = true }), function(text)
    surface:answer(question, { { labels = { accepts.label } } }, { plan = text })
  end)
  vim.bo[bufnr].filetype = 'markdown'
  vim.cmd.sbuffer(bufnr)
end

---@param timestamp string
---@return string
local function when(timestamp)
  return (timestamp:gsub('T', ' '):sub(1, 16))
end

---@param session kode.SessionSummary
---@return string
local function session_line(session)
  local parts = { when(session.updatedAt), line(session.title ~= '' and session.title or '(empty)') }
  local notes = {}
  if session.runState and session.runState ~= 'READY' then
    notes[#notes + 1] = session.runState:lower()
  end
  if session.state ~= 'stored' then
    notes[#notes + 1] = ({ live = 'open here', elsewhere = 'open elsewhere' })[session.state] or session.state
  end
  if session.archived then
    notes[#notes + 1] = 'archived'
  end
  if session.turns then
    notes[#notes + 1] = ('%d turns'):format(session.turns)
  end
  parts[#parts + 1] = #notes > 0 and ('(%s)'):format(table.concat(notes, ', ')) or nil
  return table.concat(parts, '  ')
end

--- Chooses a session.
---@param connection kode.Connection
---@param options { archived?: boolean, prompt: string }
---@param choose fun(session: kode.SessionSummary)
---@param cursor? string
function M.session(connection, options, choose, cursor)
  local params = { limit = PAGE, cursor = cursor, archived = options.archived and 'include' or nil }
  connection:ask('agent/session/list', params, function(result)
    local entries = result.sessions
    if result.nextCursor then
      entries[#entries + 1] = { more = result.nextCursor }
    end
    select(entries, options.prompt, function(entry)
      return entry.more and 'Older ones …' or session_line(entry)
    end, function(entry)
      if entry.more then
        return M.session(connection, options, choose, entry.more)
      end
      choose(entry)
    end)
  end)
end

--- Searches all sessions and lets the user choose a hit.
---@param connection kode.Connection
---@param query string
---@param choose fun(id: kode.SessionId)
function M.search(connection, query, choose)
  connection:ask('agent/session/search', { query = query, limit = PAGE }, function(result)
    select(result.hits, 'Found', function(hit)
      return ('%s: %s'):format(line(hit.title), line(hit.snippet))
    end, function(hit)
      choose(hit.sessionId)
    end)
  end)
end

---@param preview kode.RestorePreview
---@return string[]
local function restore_lines(preview)
  local lines = { ('%d items of the conversation go.'):format(preview.items), '' }
  for _, file in ipairs(preview.files) do
    if file.problem then
      lines[#lines + 1] = ('%s stays: %s'):format(file.path, file.problem)
    end
    vim.list_extend(lines, vim.split(file.unified, '\n', { plain = true }))
    if file.userEdits then
      lines[#lines + 1] = ('Your own changes of %s since then are kept:'):format(file.path)
      vim.list_extend(lines, vim.split(file.userEdits, '\n', { plain = true }))
    end
  end
  return lines
end

local restores = {
  { label = 'Files and conversation', what = 'both' },
  { label = 'Files', what = 'files' },
  { label = 'Conversation', what = 'conversation' },
  { label = 'Look at what has changed since', what = 'files', look = true },
}

--- Goes back to before a prompt.
---@param surface kode.Surface
---@param checkpoint kode.Checkpoint
function M.restore(surface, checkpoint)
  select(restores, ('Go back to before "%s"'):format(line(checkpoint.title)), function(entry)
    return entry.label
  end, function(entry)
    local params = { checkpointId = checkpoint.checkpointId, what = entry.what, dryRun = entry.look or nil }
    surface:ask('agent/checkpoint/restore', params, function(result)
      if result.type == 'preview' then
        scratch.float(restore_lines(result), { title = 'What going back would do', filetype = 'diff' })
      else
        surface.last_resolution = result.resolutionId
        vim.notify('kode: went back; :Kode revert takes that back', vim.log.levels.INFO)
      end
    end)
  end)
end

--- Chooses a checkpoint, the newest first.
---@param surface kode.Surface
---@param choose fun(checkpoint: kode.Checkpoint)
function M.checkpoint(surface, choose)
  surface:ask('agent/checkpoint/list', {}, function(result)
    local checkpoints = {}
    for number = #result.checkpoints, 1, -1 do
      checkpoints[#checkpoints + 1] = result.checkpoints[number]
    end
    select(checkpoints, 'Before which prompt?', function(checkpoint)
      local files = #checkpoint.uris > 0 and ('  (%d files)'):format(#checkpoint.uris) or ''
      return ('%s  %s%s'):format(when(checkpoint.timestamp), line(checkpoint.title), files)
    end, choose)
  end)
end

--- Chooses a model of those that can be used.
---@param surface kode.Surface
---@param choose fun(name: string)
function M.model(surface, choose)
  surface.connection:ask('agent/models/list', {}, function(result)
    select(result.models, 'Model', function(model)
      local mark = model.name == surface.session.model and '* ' or '  '
      local problem = model.problem and ('  cannot be used: %s'):format(line(model.problem.message)) or ''
      return ('%s%s  %s %s%s'):format(mark, model.name, model.provider, model.model, problem)
    end, function(model)
      choose(model.name)
    end)
  end)
end

---@param surface kode.Surface
---@param op kode.QueueOp
local function queue_update(surface, op)
  surface:ask('agent/queue/update', { op = op })
end

--- Opens a prompt that waits to be changed; `:w` hands the new words in.
---@param surface kode.Surface
---@param prompt kode.QueuedPrompt
local function edit_queued(surface, prompt)
  local bufnr = scratch.editor('queued', vim.split(prompt.text, '\n', { plain = true }), function(text)
    queue_update(surface, { type = 'edit', queueId = prompt.queueId, text = text })
  end)
  vim.cmd.sbuffer(bufnr)
end

---@type { label: string, act: fun(surface: kode.Surface, prompt: kode.QueuedPrompt, number: integer) }[]
local queue_acts = {
  {
    label = 'Send now',
    act = function(surface, prompt)
      queue_update(surface, { type = 'promote', queueId = prompt.queueId })
    end,
  },
  {
    label = 'Change',
    act = function(surface, prompt)
      edit_queued(surface, prompt)
    end,
  },
  {
    label = 'One place earlier',
    act = function(surface, prompt, number)
      local before = surface.session.queue[number - 1]
      if before then
        queue_update(surface, { type = 'move', queueId = prompt.queueId, before = before.queueId })
      end
    end,
  },
  {
    label = 'To the end',
    act = function(surface, prompt)
      queue_update(surface, { type = 'move', queueId = prompt.queueId })
    end,
  },
  {
    label = 'Drop',
    act = function(surface, prompt)
      queue_update(surface, { type = 'remove', queueId = prompt.queueId })
    end,
  },
}

--- Changes what waits.
---@param surface kode.Surface
function M.queue(surface)
  local session = surface.session
  local entries = {}
  for _, prompt in ipairs(session.steering) do
    entries[#entries + 1] = { prompt = prompt, number = 0 }
  end
  for number, prompt in ipairs(session.queue) do
    entries[#entries + 1] = { prompt = prompt, number = number }
  end
  select(entries, session.paused and 'Waits until you go on' or 'Waits', function(entry)
    return (entry.number == 0 and 'now  ' or entry.number .. '  ') .. line(entry.prompt.text)
  end, function(entry)
    select(queue_acts, line(entry.prompt.text), function(act)
      return act.label
    end, function(act)
      act.act(surface, entry.prompt, entry.number)
    end)
  end)
end

---@param source kode.RuleSource
---@return string
local function place(source)
  return source.file and ('%s:%s'):format(source.file, source.line or '?') or source.layer
end

local trust_acts = {
  { label = 'Not now', method = 'agent/trust/dismiss' },
  { label = 'Approve exactly this', method = 'agent/trust/approve' },
}

--- Shows what files of the workspace ask for, and approves what is chosen exactly as it was shown.
---@param surface kode.Surface
function M.trust(surface)
  surface:ask('agent/trust/list', {}, function(result)
    if #result.waiting == 0 then
      return vim.notify('kode: no file of the workspace asks for anything', vim.log.levels.INFO)
    end
    select(result.waiting, 'Files of the workspace ask for', function(wish)
      local note = wish.dismissed and ' (not now)' or wish.earlier and ' (changed since you approved it)' or ''
      return ('%s %s  %s%s'):format(wish.key, line(wish.text), place(wish.source), note)
    end, function(wish)
      local shown = ('%s in %s:\n%s'):format(wish.key, place(wish.source), wish.text)
      select(trust_acts, shown, function(act)
        return act.label
      end, function(act)
        surface:ask(act.method, { digests = { wish.digest } }, function(done)
          local counts = done and done.changed == 1
          vim.notify(counts and 'kode: it counts from now on' or 'kode: it does not count', vim.log.levels.INFO)
        end)
      end)
    end)
  end)
end

local mcp_acts = {
  { label = 'Connect anew', method = 'agent/mcp/reconnect' },
  { label = 'Switch on', method = 'agent/mcp/enable' },
  { label = 'Switch off', method = 'agent/mcp/disable' },
  { label = 'Sign in', method = 'agent/mcp/authenticate' },
}

--- Shows the MCP servers, and does something about the one that is chosen.
---@param surface kode.Surface
function M.mcp(surface)
  surface:ask('agent/mcp/list', {}, function(result)
    select(result.servers, 'MCP servers', function(server)
      return ('%s  %s, %d tools  %s'):format(line(server.name), server.state, server.tools, place(server.source))
    end, function(server)
      select(mcp_acts, line(server.name), function(act)
        return act.label
      end, function(act)
        surface:ask(act.method, { server = server.name }, function(answer)
          -- The page comes from a server that somebody else has written: the user opens it, or does not.
          local address = type(answer) == 'table' and answer.url
          vim.notify(address and 'kode: sign in at ' .. line(address) or 'kode: begun', vim.log.levels.INFO)
        end)
      end)
    end)
  end)
end

--- Shows the rules in force, and removes the one that is chosen.
---@param surface kode.Surface
function M.rules(surface)
  surface:ask('agent/permission/rules', {}, function(result)
    select(result.rules, ('Rules (mode %s); choose one to remove it'):format(result.mode), function(entry)
      return ('%s %s  %s'):format(entry.behavior, line(entry.rule), place(entry.source))
    end, function(entry)
      if not entry.source.file then
        return vim.notify('kode: this rule is in no file', vim.log.levels.WARN)
      end
      surface:ask('agent/permission/removeRule', {
        file = entry.source.file,
        behavior = entry.behavior,
        rule = entry.rule,
      }, function(removed)
        vim.notify(removed.removed and 'kode: the rule was removed' or 'kode: the rule was not there any more')
      end)
    end)
  end)
end

return M
