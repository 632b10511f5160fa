--- A session with all that shows it: transcript, prompt, review, notifications.
---
--- Rule: views are made when they are first shown and can be dropped at any time; the session has the truth. Functions here
--- send an intent, and the event that follows changes the view.

local config = require('kode.config')
local layout = require('kode.layout')
local render = require('kode.render')
local status = require('kode.status')

---@class kode.Surface
---@field connection kode.Connection
---@field session kode.Session
---@field transcript? kode.Transcript
---@field prompt? kode.Prompt
---@field review kode.Review
---@field parts kode.InputPart[] Attachments of the next prompt.
---@field notify_done boolean Whether the end of the turn is notified, because `:Kode!` began it.
---@field last_resolution? kode.ResolutionId
---@field progress_id? integer|string
---@field private notified table<string, boolean> The prompts that were notified.
---@field private asked_id? string The oldest prompt that waits.
---@field private asked_since integer Since when it is the oldest, in milliseconds.
local Surface = {}
Surface.__index = Surface

local M = {}

---@type table<kode.SessionId, kode.Surface>
local surfaces = {}
---@type kode.SessionId?
local latest

---@return table<kode.SessionId, kode.Surface>
function M.all()
  return surfaces
end

--- The surface that was used last.
---@return kode.Surface?
function M.latest()
  return latest and surfaces[latest]
end

---@param surface kode.Surface
function M.use(surface)
  latest = surface.session.id
end

--- Makes a surface for a session that the client has started to follow.
---@param connection kode.Connection
---@param session kode.Session
function M.watch(connection, session)
  local surface = setmetatable({
    connection = connection,
    session = session,
    parts = {},
    notify_done = false,
    notified = {},
    asked_since = 0,
  }, Surface)
  surface.review = require('kode.review').new(surface)
  surfaces[session.id] = surface
  session:on(function(change)
    surface:on_change(change)
  end)
  surface.review:refresh()
end

--- The surface the user means: that of the buffer, of the tab page, else the last one of the project.
---@return kode.Surface?
function M.current()
  local bufnr = vim.api.nvim_get_current_buf()
  local transcript = require('kode.transcript').of(bufnr)
  local here = transcript and transcript:owner() or require('kode.prompt').surface_of(bufnr)
  if here then
    return here
  end
  local view = layout.view()
  if view then
    return view.surface
  end
  local surface = M.latest()
  if surface and surface.connection.root == require('kode.connection').root(bufnr) then
    return surface
  end
end

--- Callers that wait for the first session of a project.
---@type table<string, fun(surface: kode.Surface)[]>
local waiting = {}

--- Continues with the surface the user means, or with that of a new session: one, however much is asked for until it is
--- there.
---@param callback fun(surface: kode.Surface)
function M.with(callback)
  local surface = M.current()
  if surface then
    M.use(surface)
    return callback(surface)
  end
  local connection = require('kode.connection')
  local root = connection.root(vim.api.nvim_get_current_buf())
  if waiting[root] then
    return table.insert(waiting[root], callback)
  end
  waiting[root] = { callback }
  connection.get(root):new_session(function(session)
    local callbacks = waiting[root]
    waiting[root] = nil
    M.use(surfaces[session.id])
    for _, act in ipairs(callbacks) do
      act(surfaces[session.id])
    end
  end, function()
    waiting[root] = nil
  end)
end

--- The models of a connection were listed: an empty conversation says whether one can answer.
---@param connection kode.Connection
function M.models_changed(connection)
  for _, surface in pairs(surfaces) do
    if surface.connection == connection and surface.transcript and #surface.session.items == 0 then
      surface.transcript:draw()
    end
  end
  status.changed()
end

--- Forgets a session that is gone.
---@param id kode.SessionId
function M.forget(id)
  local surface = surfaces[id]
  if not surface then
    return
  end
  surfaces[id] = nil
  surface.connection.sessions[id] = nil
  surface.review:clear()
  local view = layout.view()
  if view and view.surface == surface then
    layout.close()
  end
  for _, part in ipairs({ surface.transcript or false, surface.prompt or false }) do
    if part and vim.api.nvim_buf_is_valid(part.buffer) then
      vim.api.nvim_buf_delete(part.buffer, { force = true })
    end
  end
  if latest == id then
    latest = nil
  end
end

--- The buffers of the transcript and the prompt.
---@return integer transcript
---@return integer prompt
function Surface:buffers()
  local is_new = not self.transcript or not self.prompt
  self.transcript = self.transcript or require('kode.transcript').new(self)
  self.prompt = self.prompt or require('kode.prompt').new(self)
  if is_new then
    self:name_buffers()
  end
  return self.transcript.buffer, self.prompt.buffer
end

---@private
function Surface:name_buffers()
  local buffers = require('kode.buffers')
  if self.transcript then
    buffers.name(self.transcript.buffer, self.session)
    buffers.describe(self.transcript.buffer, self)
  end
  if self.prompt then
    buffers.name(self.prompt.buffer, self.session, 'Prompt')
    buffers.describe(self.prompt.buffer, self)
  end
end

---@private
---@param change any One of `kode.Change`, whose `kind` says which.
function Surface:on_change(change)
  if self.transcript then
    self.transcript:on_change(change)
  end
  local kind = change.kind
  if kind == 'edits' then
    self.review:changed(change.uris)
    require('kode.edits').reread(change.uris)
  elseif kind == 'files' then
    require('kode.edits').reread(change.uris)
  elseif kind == 'resolved' then
    self:resolved(change.outcome)
  elseif kind == 'reset' then
    self.review:refresh()
    self:notify_waiting()
  elseif kind == 'pending' then
    self:notify_waiting()
  elseif kind == 'done' then
    self:notify_done_turn(change.done)
  elseif kind == 'trust' then
    local message = ('Kode: %s need your approval (:Kode trust)'):format(change.summary)
    require('kode.notify').show(message, vim.log.levels.WARN)
  elseif kind == 'item' and change.added and change.item.body.goTo then
    self:go_to(change.item.body.goTo)
  end
  if (kind == 'done' or kind == 'reset') and package.loaded['kode.comments'] then
    require('kode.comments').answered(self)
  end
  if self.prompt and (kind == 'draft' or kind == 'reset') then
    self.prompt:on_draft()
  end
  if kind ~= 'text' and kind ~= 'progress' then
    self:name_buffers()
    status.changed()
  end
end

--- Shows another session instead of this one, by a command of the user. A user who is elsewhere by now stays there.
---@private
---@param id kode.SessionId
function Surface:go_to(id)
  self.connection:load(id, function(session)
    local surface = surfaces[session.id]
    M.use(surface)
    local view = layout.view()
    local window = vim.api.nvim_get_current_win()
    if view and view.surface == self and (window == view.prompt or window == view.transcript) then
      layout.open(surface, view.layout)
    end
  end)
end

--- Notifies of prompts that wait while no window shows them, each once.
---@private
function Surface:notify_waiting()
  local asked = {} ---@type table<string, string>
  local known = {} ---@type table<string, boolean>
  for _, prompt in ipairs(self.session.permissions) do
    asked[prompt.permissionId] = ('Kode asks: %s (:Kode permission)'):format(render.exact_line(prompt.title))
  end
  for _, question in ipairs(self.session.questions) do
    local text = render.line(question.questions[1].question)
    asked[question.questionId] = ('Kode has a question: %s (:Kode answer)'):format(text)
  end
  for id, text in pairs(asked) do
    if not self.notified[id] and config.get().notify and not layout.shows(self) then
      require('kode.notify').show(text, vim.log.levels.WARN)
    end
    known[id] = true
  end
  self.notified = known
  local oldest = self.session.permissions[1]
  if (oldest and oldest.permissionId) ~= self.asked_id then
    self.asked_id, self.asked_since = oldest and oldest.permissionId, vim.uv.now()
  end
end

---@private
---@param done kode.Done
function Surface:notify_done_turn(done)
  local good = done.stopReason == 'end_turn'
  local how = good and 'done' or 'ended: ' .. done.stopReason:gsub('_', ' ')
  local level = good and vim.log.levels.INFO or vim.log.levels.WARN
  status.progress(self, good and 'success' or 'failed', how)
  if self.notify_done then
    self.notify_done = false
    local changes = self.review:summary()
    require('kode.notify').show(('Kode: %s%s'):format(how, changes and ', ' .. changes or ''), level)
  end
end

---@private
---@param outcome kode.EditsResolved
function Surface:resolved(outcome)
  self.last_resolution = outcome.resolutionId
  local parts = {}
  if #outcome.conflicts > 0 then
    local places = render.count(#outcome.conflicts, 'place')
    parts[1] = ('%s kept: you have edited there (:Kode undo force undoes the rest)'):format(places)
  end
  for _, failure in ipairs(outcome.failed) do
    parts[#parts + 1] = ('%s: %s'):format(vim.uri_to_fname(failure.uri), failure.reason)
  end
  if #parts > 0 then
    vim.notify('kode: ' .. table.concat(parts, '\n'), vim.log.levels.WARN)
  end
end

---@class kode.SendOptions
---@field delivery? kode.Delivery
---@field parts? kode.InputPart[]
---@field sent? fun() Called when the server has taken it.
---@field failed? fun() Called when it has not.

--- Sends a prompt.
---@param text string
---@param options? kode.SendOptions
function Surface:send(text, options)
  options = options or {}
  local input = vim.list_extend(vim.list_slice(self.parts), options.parts or {})
  if text:match('%S') then
    table.insert(input, 1, { type = 'text', text = text })
  end
  if #input == 0 then
    return vim.notify('kode: there is nothing to send', vim.log.levels.WARN)
  end
  local question = require('kode.aside').question(text)
  if question then
    return require('kode.aside').ask(self, question, options.failed)
  end
  M.use(self)
  local client = self.connection:client()
  local context = client and require('kode.context').editor(client.offset_encoding)
  local params = { sessionId = self.session.id, input = input, context = context, delivery = options.delivery }
  local parts = self.parts
  self.parts = {}
  if self.transcript then
    self.transcript:scroll_to_end()
  end
  self.connection:request('agent/turn/start', params, function(err)
    if err then
      self.parts = parts
      require('kode.connection').complain(err)
      if options.failed then
        options.failed()
      end
    elseif options.sent then
      options.sent()
    end
  end)
  status.progress(self, 'running', 'working')
end

--- Sends the text of the prompt's buffer.
---@param delivery? kode.Delivery
function Surface:send_prompt(delivery)
  local prompt = assert(self.prompt)
  local text = prompt:text()
  if not text:match('%S') and #self.parts == 0 then
    return
  end
  prompt:clear()
  self:send(text, {
    delivery = delivery,
    failed = function()
      if prompt:text() == '' then
        prompt:insert(text)
      end
    end,
  })
end

--- Attaches something to the next prompt.
---@param part kode.InputPart
function Surface:attach(part)
  table.insert(self.parts, part)
  self:parts_changed()
end

--- Detaches something from the next prompt.
---@param part kode.InputPart
function Surface:detach(part)
  self.parts = vim.tbl_filter(function(other)
    return other ~= part
  end, self.parts)
  self:parts_changed()
end

---@private
function Surface:parts_changed()
  if self.prompt then
    self.prompt:changed()
  end
  status.changed()
end

--- Cancels the running turn; the queue stays.
function Surface:stop()
  self.connection:ask('agent/turn/cancel', { sessionId = self.session.id }, function(result)
    if not result.cancelled then
      vim.notify('kode: nothing is running', vim.log.levels.INFO)
    end
  end)
end

--- Sends a request about this session; the user is notified when it fails.
---@param method string
---@param params table
---@param callback? fun(result: any)
function Surface:ask(method, params, callback)
  params.sessionId = self.session.id
  self.connection:ask(method, params, callback or function() end)
end

--- Answers a permission prompt. An earlier answer from elsewhere wins, and its event closes the prompt.
---@param prompt kode.PermissionPrompt
---@param answer table
function Surface:respond(prompt, answer)
  answer.permissionId = prompt.permissionId
  self:ask('agent/permission/respond', answer)
end

--- Denies a prompt with a reason for the model.
---@param prompt kode.PermissionPrompt
function Surface:deny_with_feedback(prompt)
  vim.ui.input({ prompt = 'What should Kode do instead? ' }, function(reason)
    if reason then
      self:respond(prompt, { decision = 'deny', feedback = reason ~= '' and reason or nil })
    end
  end)
end

--- Answers the oldest permission prompt by one key. Where no window shows it, it is shown first; where it has only just
--- appeared, the key has to be pressed again.
---@param wish "allow"|"deny"|"reason"
function Surface:quick_answer(wish)
  local prompt = self.session.permissions[1]
  if not prompt then
    local question = self.session.questions[1]
    if question then
      return require('kode.pick').question(self, question)
    end
    return vim.notify('kode: nothing waits for you', vim.log.levels.INFO)
  elseif not layout.shows(self) then
    return require('kode.pick').permission(self, prompt)
  elseif vim.uv.now() - self.asked_since < config.get().settle then
    return vim.notify('kode: this prompt just appeared; press the key again', vim.log.levels.WARN)
  elseif wish == 'reason' then
    return self:deny_with_feedback(prompt)
  end
  self:respond(prompt, { decision = wish })
end

--- The modes that a key goes through, from the most careful to the quickest.
local MODES = { 'plan', 'default', 'acceptEdits' }

--- Changes to the next mode.
function Surface:next_mode()
  local at = 0
  for number, mode in ipairs(MODES) do
    if mode == self.session.mode then
      at = number
    end
  end
  self:ask('agent/session/configure', { mode = MODES[at % #MODES + 1] }, function(now)
    vim.notify('kode: mode ' .. now.mode, vim.log.levels.INFO)
  end)
end

--- Puts the words of an earlier prompt into the prompt buffer, to be edited and sent again; the text there stays.
---@param text string
function Surface:edit_again(text)
  self:buffers()
  if self.prompt:text() == '' then
    self.prompt:insert(text)
  end
end

--- Answers a question; without answers the user refuses to.
---@param question kode.Question
---@param answers? kode.QuestionAnswer[]
---@param more? table
function Surface:answer(question, answers, more)
  local params = vim.tbl_extend('force', { questionId = question.questionId, answers = answers }, more or {})
  self:ask('agent/question/respond', params)
end

--- Loads a page of older items.
function Surface:older()
  local session = self.session
  if not session.more_items or not session.items[1] then
    return vim.notify('kode: no older messages', vim.log.levels.INFO)
  end
  local params = { before = session.items[1].itemId, limit = config.get().transcript.items }
  self:ask('agent/session/items', params, function(page)
    session:prepend(page)
  end)
end

return M
