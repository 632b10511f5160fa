--- The client's state of a session: a fold of a snapshot and the events after it.
---
--- Rule: only `reset`, `apply` and `prepend` change the state. They never touch the editor, and an event that the snapshot
--- contains changes nothing. Listeners get the change, so that cost follows it.

---@alias kode.Change
---| { kind: "reset" } # Everything is new.
---| { kind: "item", item: kode.Item, added: boolean } # An item was added or changed.
---| { kind: "text", item: kode.Item, text: string } # An item's text grew.
---| { kind: "progress", item: kode.Item } # A running call has printed output.
---| { kind: "rewound", from: integer } # The items from this place on were removed.
---| { kind: "older", count: integer } # Older items were added at the beginning.
---| { kind: "trimmed", count: integer } # The oldest items were dropped.
---| { kind: "pending" } # Prompts, questions, queue, goal, team or todos changed.
---| { kind: "status" } # Anything else in a status line changed.
---| { kind: "draft" } # The unsent prompt was changed elsewhere.
---| { kind: "edits", uris: kode.Uri[] } # Changes to review are out of date.
---| { kind: "resolved", outcome: kode.EditsResolved } # A decision on changes is done.
---| { kind: "files", uris: kode.Uri[] } # Files were changed on the disk.
---| { kind: "done", done: kode.Done } # A turn ended.
---| { kind: "trust", summary: string, files: string[] } # Files of the workspace need approval.
---| { kind: "gap" } # Events were lost: load the session again.

---@class kode.SubagentState
---@field agentId kode.AgentId
---@field type string
---@field description string
---@field running boolean
---@field calls integer Tool calls it has started.
---@field last? string The newest call's title.
---@field running_call? kode.ToolCall Its call that runs now.

--- The tools that run commands.
---@type table<string, true>
local shells = { Bash = true, PowerShell = true }

---@class kode.Session
---@field id kode.SessionId
---@field title string
---@field seq integer The number of the newest event in here.
---@field state kode.RunState
---@field mode kode.Mode
---@field model string
---@field effort? kode.Effort
---@field items kode.Item[]
---@field more_items boolean
---@field permissions kode.PermissionPrompt[]
---@field questions kode.Question[]
---@field todos kode.Todo[]
---@field goal? kode.Goal
---@field worktree? kode.SessionWorktree
---@field sandbox? string
---@field team? kode.Team
---@field queue kode.QueuedPrompt[]
---@field steering kode.QueuedPrompt[]
---@field paused boolean
---@field draft? kode.Draft
---@field tasks table<kode.TaskId, kode.BackgroundTask>
---@field cost? number
---@field context_tokens? integer
---@field context_window? integer
---@field speed? number Tokens a second of the newest long answer.
---@field limits? kode.ProviderLimit[] The provider's limits as it stated them last.
---@field following? kode.FollowedSession
---@field retry? kode.ModelRetry
---@field compacting boolean
---@field storage_problem? string
---@field withheld integer Settings that wait for approval.
---@field subagents table<kode.CallId, kode.SubagentState>
---@field progress table<kode.ItemId, string> The newest output of calls that run.
---@field done? kode.Done How the newest turn ended.
---@field max_items integer
---@field private index table<kode.ItemId, integer>
---@field private agents table<kode.AgentId, kode.CallId>
---@field private listeners table<integer, fun(change: kode.Change)>
---@field private next_listener integer
local Session = {}
Session.__index = Session

--- A session from its snapshot.
---@param snapshot kode.Snapshot
---@param max_items? integer
---@return kode.Session
function Session.new(snapshot, max_items)
  local self = setmetatable({ listeners = {}, next_listener = 1, max_items = max_items or 4000 }, Session)
  self:reset(snapshot)
  return self
end

--- Subscribes a function to changes; returns a function that unsubscribes it.
---@param listener fun(change: kode.Change)
---@return fun() stop
function Session:on(listener)
  local number = self.next_listener
  self.next_listener = number + 1
  self.listeners[number] = listener
  return function()
    self.listeners[number] = nil
  end
end

---@private
---@param change kode.Change
function Session:emit(change)
  for _, listener in pairs(self.listeners) do
    listener(change)
  end
end

---@private
function Session:reindex()
  self.index = {}
  for place, item in ipairs(self.items) do
    self.index[item.itemId] = place
  end
end

--- Replaces the state by a snapshot.
---@param snapshot kode.Snapshot
function Session:reset(snapshot)
  self.id = snapshot.sessionId
  self.title = snapshot.title
  self.seq = snapshot.bookmark.seq
  self.state = snapshot.state
  self.mode = snapshot.mode
  self.model = snapshot.model.name
  self.effort = snapshot.effort
  self.items = snapshot.items
  self.more_items = snapshot.moreItems
  self.permissions = snapshot.pendingPermissions
  self.questions = snapshot.questions or {}
  self.todos = snapshot.todos or {}
  self.goal = snapshot.goal
  self.worktree = snapshot.worktree
  self.sandbox = snapshot.sandbox
  self.team = snapshot.team
  self.queue = snapshot.queue
  self.steering = snapshot.steering or {}
  self.paused = snapshot.queuePaused or false
  self.draft = snapshot.draft
  self.tasks = {}
  for _, task in ipairs(snapshot.tasks or {}) do
    self.tasks[task.taskId] = task
  end
  self.cost = snapshot.cost
  self.context_tokens = snapshot.context and snapshot.context.tokens
  self.context_window = snapshot.context and snapshot.context.window
  self.following = snapshot.following
  self.retry = nil
  self.compacting = false
  self.storage_problem = nil
  self.withheld = self.withheld or 0
  self.subagents, self.agents, self.progress = {}, {}, {}
  self:reindex()
  self:name()
  self:emit({ kind = 'reset' })
end

--- Titles an untitled session by the first line of its first prompt.
---@private
function Session:name()
  local first = self.items[1]
  if self.title == '' and not self.more_items and first and first.body.type == 'userMessage' then
    local line = vim.trim(first.body.text or ''):match('^[^\n]*')
    self.title = vim.fn.strcharpart(line or '', 0, 80)
  end
end

--- Whether the title was given, and is not the first line of the first prompt.
---@return boolean
function Session:is_named()
  local first = self.items[1]
  if self.title == '' or (not self.more_items and not first) then
    return false
  end
  local text = first and first.body.type == 'userMessage' and not self.more_items and first.body.text or nil
  return not text or not vim.startswith(vim.trim(text), self.title)
end

--- Adds a page of older items.
---@param page kode.ItemPage
function Session:prepend(page)
  local items = page.items
  for _, item in ipairs(self.items) do
    items[#items + 1] = item
  end
  local count = #items - #self.items
  self.items = items
  self.more_items = page.moreItems
  self:reindex()
  self:emit({ kind = 'older', count = count })
end

--- An item of the transcript.
---@param id kode.ItemId
---@return kode.Item?
function Session:item(id)
  return self.items[self.index[id]]
end

--- The number of prompts and questions that wait for the user.
---@return integer
function Session:waiting()
  return #self.permissions + #self.questions
end

---@private
---@param item kode.Item
function Session:upsert(item)
  if item.agentId then
    return self:of_subagent(item)
  end
  local place = self.index[item.itemId]
  if place then
    self.items[place] = item
  else
    self.items[#self.items + 1] = item
    self.index[item.itemId] = #self.items
    self:name()
  end
  if item.body.type == 'toolCall' and item.body.endedAt then
    self.progress[item.itemId] = nil
  end
  self:emit({ kind = 'item', item = item, added = not place })
  -- Dropping many at once keeps single events cheap.
  if #self.items > self.max_items then
    self:trim(math.floor(self.max_items / 4))
  end
end

---@private
---@param count integer
function Session:trim(count)
  self.items = vim.list_slice(self.items, count + 1)
  self.more_items = true
  self:reindex()
  self:emit({ kind = 'trimmed', count = count })
end

--- Shows the work of a sub-agent in the card of the call that started it.
---@private
---@param item kode.Item
function Session:of_subagent(item)
  local call = self.agents[item.agentId]
  local agent = call and self.subagents[call]
  if not agent or item.body.type ~= 'toolCall' then
    return
  end
  if item.body.state == 'EXECUTING' then
    agent.calls = agent.calls + 1
    agent.last = item.body.title
    agent.running_call = item.body
    self:emit_call(call)
  elseif agent.running_call and agent.running_call.callId == item.body.callId then
    agent.running_call = nil
  end
end

--- The call of a shell that runs now, of the conversation or of a sub-agent; one runs at a time.
---@return kode.ToolCall?
function Session:running_command()
  for place = #self.items, 1, -1 do
    local body = self.items[place].body
    if body.type == 'toolCall' and shells[body.name] and body.state == 'EXECUTING' then
      ---@cast body kode.ToolCall
      return body
    end
  end
  for _, agent in pairs(self.subagents) do
    if agent.running_call and shells[agent.running_call.name] then
      return agent.running_call
    end
  end
end

---@private
---@param call kode.CallId
function Session:emit_call(call)
  for place = #self.items, 1, -1 do
    local body = self.items[place].body
    if body.type == 'toolCall' and body.callId == call then
      return self:emit({ kind = 'progress', item = self.items[place] })
    end
  end
end

---@private
---@param chunk kode.TextChunk|kode.ThinkChunk
function Session:grow(chunk)
  local item = self:item(chunk.itemId)
  if item then
    item.body.text = item.body.text .. chunk.text
    self:emit({ kind = 'text', item = item, text = chunk.text })
  end
end

---@param list table[]
---@param key string
---@param id string
local function remove(list, key, id)
  for place, entry in ipairs(list) do
    if entry[key] == id then
      table.remove(list, place)
      return
    end
  end
end

---@param list table[]
---@param key string
---@param entry table
local function put(list, key, entry)
  for place, known in ipairs(list) do
    if known[key] == entry[key] then
      list[place] = entry
      return
    end
  end
  list[#list + 1] = entry
end

--- The effect of each type of event; other types change nothing that is shown.
---@type table<string, fun(self: kode.Session, event: any)>
local folds = {}

function folds.item_added(self, event)
  self:upsert(event.item)
end
folds.item_updated = folds.item_added
folds['tool:start'] = folds.item_added
folds['tool:end'] = folds.item_added

function folds.text_chunk(self, event)
  self.retry = nil
  self:grow(event)
end
folds.think_chunk = folds.text_chunk

folds['tool:progress'] = function(self, event)
  local item = self:item(event.itemId)
  if item then
    self.progress[event.itemId] = event.text
    self:emit({ kind = 'progress', item = item })
  end
end

function folds.turn_started(self)
  self.done, self.retry = nil, nil
  self:emit({ kind = 'status' })
end

function folds.done(self, event)
  self.done, self.retry, self.compacting = event, nil, false
  -- One unknown part makes the sum unknown.
  self.cost = self.cost and event.cost and self.cost + event.cost or nil
  self:emit({ kind = 'status' })
  self:emit({ kind = 'done', done = event })
end

function folds.permission_required(self, event)
  put(self.permissions, 'permissionId', event.prompt)
  self:emit({ kind = 'pending' })
end

function folds.permission_updated(self, event)
  for _, prompt in ipairs(self.permissions) do
    if prompt.permissionId == event.permissionId then
      prompt.diagnostics = event.diagnostics
      self:emit({ kind = 'pending' })
    end
  end
end

function folds.permission_decided(self, event)
  remove(self.permissions, 'permissionId', event.permissionId)
  self:emit({ kind = 'pending' })
end

function folds.question_asked(self, event)
  put(self.questions, 'questionId', event.question)
  self:emit({ kind = 'pending' })
end

function folds.question_answered(self, event)
  remove(self.questions, 'questionId', event.questionId)
  self:emit({ kind = 'pending' })
end

function folds.agent_resumed(self)
  self.permissions, self.questions = {}, {}
  self:emit({ kind = 'pending' })
end

function folds.queue_changed(self, event)
  self.queue, self.steering, self.paused = event.queue, event.steering or {}, event.paused or false
  self:emit({ kind = 'pending' })
end

function folds.state_changed(self, event)
  self.state = event.state
  self:emit({ kind = 'status' })
end

function folds.mode_changed(self, event)
  self.mode, self.model, self.effort, self.sandbox = event.mode, event.model, event.effort, event.sandbox
  self:emit({ kind = 'status' })
end

function folds.title_changed(self, event)
  self.title = event.title
  self:emit({ kind = 'status' })
end

function folds.draft_changed(self, event)
  self.draft = event.draft
  self:emit({ kind = 'draft' })
end

function folds.todo_changed(self, event)
  self.todos = event.todos
  self:emit({ kind = 'pending' })
end

function folds.goal_changed(self, event)
  self.goal = event.goal
  self:emit({ kind = 'pending' })
end

function folds.team_changed(self, event)
  self.team = event.team
  self:emit({ kind = 'pending' })
end

function folds.background_started(self, event)
  self.tasks[event.task.taskId] = event.task
  self:emit({ kind = 'status' })
end

function folds.background_ended(self, event)
  self.tasks[event.task.taskId] = nil
  self:emit({ kind = 'status' })
end

function folds.edits_changed(self, event)
  self:emit({ kind = 'edits', uris = event.uris })
end

function folds.edits_resolved(self, event)
  self:emit({ kind = 'resolved', outcome = event })
end

function folds.file_changed(self, event)
  self:emit({ kind = 'files', uris = { event.uri } })
end

function folds.rewound(self, event)
  local from = self.index[event.itemId] ---@type integer?
  if from then
    self.items = vim.list_slice(self.items, 1, from - 1)
    self:reindex()
    self:emit({ kind = 'rewound', from = from })
  end
end

function folds.config_changed(self, event)
  self.withheld = #event.withheld
  self:emit({ kind = 'status' })
end

function folds.trust_required(self, event)
  self.withheld = event.count
  self:emit({ kind = 'trust', summary = event.summary or '', files = event.files })
end

function folds.subagent_started(self, event)
  self.agents[event.agentId] = event.callId
  self.subagents[event.callId] = {
    agentId = event.agentId,
    type = event.agentType,
    description = event.description,
    running = true,
    calls = 0,
  }
  self:emit_call(event.callId)
end

function folds.subagent_ended(self, event)
  local call = self.agents[event.agentId]
  if call then
    self.subagents[call].running = false
    self:emit_call(call)
  end
end

function folds.side_answer(_, event)
  require('kode.aside').grow(event)
end

function folds.token_usage(self, event)
  self.speed = event.tokensPerSecond or self.speed
  if event.limits and #event.limits > 0 then
    self.limits = event.limits
  end
  if event.contextTokens then
    self.context_tokens = event.contextTokens
    self.context_window = event.contextWindow or self.context_window
    self:emit({ kind = 'status' })
  end
end

function folds.context_compression(self, event)
  if not event.agentId then
    local step = event.step
    self.compacting = step.type == 'started' or step.type == 'progress'
    if step.type == 'done' then
      self.context_tokens = step.tokensAfter
    end
    self:emit({ kind = 'status' })
  end
end

function folds.model_retry(self, event)
  self.retry = event
  self:emit({ kind = 'status' })
end

function folds.lease_changed(self, event)
  if event.isMine then
    self.following = nil
  else
    self.following = { by = event.writer }
  end
  self:emit({ kind = 'status' })
end

function folds.storage_failure(self, event)
  if event.recovered then
    self.storage_problem = nil
  else
    self.storage_problem = event.message
  end
  self:emit({ kind = 'status' })
end

function folds.gap(self)
  self:emit({ kind = 'gap' })
end

--- Events outside the numbered sequence.
local unnumbered = { lease_changed = true, gap = true }

--- The events about the requests to the user. In a session that another server writes they have the number of the event
--- before them. Folding one twice changes nothing.
local requests = { permission_required = true, permission_decided = true, question_asked = true, question_answered = true }

--- Folds one event in. Returns whether it was new.
---@param params kode.AgentEventParams
---@return boolean
function Session:apply(params)
  local event = params.event
  if not unnumbered[event.type] then
    local seq = params.bookmark.seq
    if seq < self.seq or seq == self.seq and not requests[event.type] then
      return false
    end
    self.seq = seq
  end
  local fold = folds[event.type]
  if fold then
    fold(self, event)
  end
  return true
end

return Session
