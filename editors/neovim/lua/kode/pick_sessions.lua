--- Choosing a conversation or a checkpoint.
---
--- Rule: a list is asked of the server each time it opens, and what cannot be taken back is confirmed.

local picker = require('kode.picker')
local render = require('kode.render')
local scratch = require('kode.scratch')
local time = require('kode.time')

local M = {}

local line = render.line

--- Sessions of one page of a list.
local PAGE = 50

---@type table<string, string>
local presences = { live = 'open here', elsewhere = 'open elsewhere' }

---@param session kode.SessionSummary
---@return string
local function title_of(session)
  return line(session.title ~= '' and session.title or '(empty)')
end

---@param session kode.SessionSummary
---@return string
local function session_line(session)
  local notes = {}
  if session.runState and session.runState ~= 'READY' then
    notes[#notes + 1] = session.runState:lower()
  end
  if session.state ~= 'stored' then
    notes[#notes + 1] = presences[session.state] or session.state
  end
  if session.archived then
    notes[#notes + 1] = 'archived'
  end
  if session.turns then
    notes[#notes + 1] = render.count(session.turns, 'turn')
  end
  local note = #notes > 0 and ('  (%s)'):format(table.concat(notes, ', ')) or ''
  return ('%s  %s%s'):format(time.minute(session.updatedAt), title_of(session), note)
end

---@param session kode.SessionSummary
---@return kode.PickerPreview
local function session_preview(session)
  local lines = { '# ' .. title_of(session), '' }
  if session.lastAnswer then
    vim.list_extend(lines, { '## Last answer', '' })
    vim.list_extend(lines, render.lines(session.lastAnswer))
    vim.list_extend(lines, { '', '## Figures', '' })
  end
  local function fact(name, value)
    if value then
      lines[#lines + 1] = ('- %s: %s'):format(name, value)
    end
  end
  fact('last used', time.minute(session.updatedAt))
  fact('started', session.createdAt and time.minute(session.createdAt))
  fact('turns', session.turns)
  fact('model', session.model)
  fact('mode', session.mode)
  fact('cost', session.cost and ('$%.2f'):format(session.cost))
  fact('size', session.bytes and ('%d KiB'):format(math.ceil(session.bytes / 1024)))
  fact('problem', session.problem)
  return { lines = lines, filetype = 'markdown' }
end

--- Deletes a session once the user has confirmed it.
---@param connection kode.Connection
---@param session kode.SessionSummary
---@param done? fun()
function M.delete(connection, session, done)
  local title = title_of(session)
  vim.ui.select({ 'Keep it', 'Delete it for good' }, { prompt = ('Delete "%s"?'):format(title), kind = 'kode' }, function(_, number)
    if number ~= 2 then
      return
    end
    connection:ask('agent/session/delete', { sessionId = session.sessionId }, function()
      require('kode.surface').forget(session.sessionId)
      vim.notify('kode: deleted ' .. title, vim.log.levels.INFO)
      if done then
        done()
      end
    end)
  end)
end

---@param connection kode.Connection
---@param open fun(id: kode.SessionId)
---@param again fun() Opens the list again.
---@return kode.PickerAction[]
local function session_actions(connection, open, again)
  return {
    {
      key = '<C-r>',
      label = 'Rename',
      act = function(session)
        vim.ui.input({ prompt = 'Title: ', default = session.title }, function(title)
          if title and title ~= '' then
            local params = { sessionId = session.sessionId, title = title }
            connection:ask('agent/session/rename', params, again)
          end
        end)
      end,
    },
    {
      key = '<C-o>',
      label = 'Fork',
      act = function(session)
        connection:ask('agent/session/fork', { sessionId = session.sessionId }, function(result)
          open(result.sessionId)
        end)
      end,
    },
    {
      key = '<C-e>',
      label = 'Archive',
      act = function(session)
        local params = { sessionId = session.sessionId, archived = not session.archived }
        connection:ask('agent/session/archive', params, again)
      end,
    },
    {
      key = '<C-x>',
      label = 'Delete',
      act = function(session)
        M.delete(connection, session, again)
      end,
    },
  }
end

---@class kode.SessionListOptions
---@field title string
---@field archived? boolean Whether archived sessions are listed too.
---@field actions? boolean Whether sessions can be renamed, forked, archived and deleted in the list.

--- Lets the user choose a session.
---@param connection kode.Connection
---@param options kode.SessionListOptions
---@param choose fun(id: kode.SessionId, session?: kode.SessionSummary)
---@param cursor? string
function M.session(connection, options, choose, cursor)
  local params = { limit = PAGE, cursor = cursor, archived = options.archived and 'include' or nil }
  connection:ask('agent/session/list', params, function(result)
    local entries = result.sessions
    if result.nextCursor then
      entries[#entries + 1] = { more = result.nextCursor }
    end
    local function again()
      M.session(connection, options, choose, cursor)
    end
    picker.open({
      title = options.title,
      items = entries,
      format = function(entry)
        return entry.more and 'Older conversations …' or session_line(entry)
      end,
      preview = function(entry, show)
        show(entry.more and { lines = {} } or session_preview(entry))
      end,
      choose = function(entry)
        if entry.more then
          return M.session(connection, options, choose, entry.more)
        end
        choose(entry.sessionId, entry)
      end,
      actions = options.actions and session_actions(connection, choose, again) or nil,
    })
  end)
end

--- Searches all sessions and lets the user choose a hit.
---@param connection kode.Connection
---@param query string
---@param choose fun(id: kode.SessionId)
function M.search(connection, query, choose)
  connection:ask('agent/session/search', { query = query, limit = PAGE }, function(result)
    picker.open({
      title = ('Conversations with "%s"'):format(render.shorten(line(query), 30)),
      items = result.hits,
      format = function(hit)
        return ('%s: %s'):format(line(hit.title), line(hit.snippet))
      end,
      choose = function(hit)
        choose(hit.sessionId)
      end,
    })
  end)
end

---@param preview kode.RestorePreview
---@return string[]
local function restore_lines(preview)
  local lines = { ('%s of the conversation will be removed.'):format(render.count(preview.items, 'item')), '' }
  for _, file in ipairs(preview.files) do
    if file.problem then
      lines[#lines + 1] = ('%s stays: %s'):format(file.path, file.problem)
    end
    vim.list_extend(lines, vim.split(file.unified, '\n', { plain = true }))
    if file.userEdits then
      lines[#lines + 1] = ('Your own later changes of %s are kept:'):format(file.path)
      vim.list_extend(lines, vim.split(file.userEdits, '\n', { plain = true }))
    end
  end
  return lines
end

---@type { label: string, what: kode.RestoreWhat, look?: boolean }[]
local restores = {
  { label = 'Files and conversation', what = 'both' },
  { label = 'Files', what = 'files' },
  { label = 'Conversation', what = 'conversation' },
  { label = 'Show the changes since then', what = 'files', look = true },
}

--- Goes back to before a prompt. The words of the prompt come back into an empty prompt buffer.
---@param surface kode.Surface
---@param checkpoint kode.Checkpoint
---@param what kode.RestoreWhat
function M.restore_to(surface, checkpoint, what)
  local item = surface.session:item(checkpoint.itemId)
  local text = item and item.body.type == 'userMessage' and item.body.text or nil
  surface:ask('agent/checkpoint/restore', { checkpointId = checkpoint.checkpointId, what = what }, function(result)
    surface.last_resolution = result.resolutionId
    if what ~= 'files' and text then
      surface:edit_again(text)
    end
    vim.notify('kode: restored; :Kode revert undoes it', vim.log.levels.INFO)
  end)
end

--- Lets the user choose what of a checkpoint is restored.
---@param surface kode.Surface
---@param checkpoint kode.Checkpoint
function M.restore(surface, checkpoint)
  picker.open({
    title = ('Restore the state before "%s"'):format(render.shorten(line(checkpoint.title), 40)),
    items = restores,
    format = function(entry)
      return entry.label
    end,
    choose = function(entry)
      if not entry.look then
        return M.restore_to(surface, checkpoint, entry.what)
      end
      local params = { checkpointId = checkpoint.checkpointId, what = entry.what, dryRun = true }
      surface:ask('agent/checkpoint/restore', params, function(result)
        scratch.float(restore_lines(result), { title = 'Changes that restoring would undo', filetype = 'diff' })
      end)
    end,
  })
end

--- Lets the user choose a checkpoint, the newest first.
---@param surface kode.Surface
---@param choose fun(checkpoint: kode.Checkpoint)
function M.checkpoint(surface, choose)
  surface:ask('agent/checkpoint/list', {}, function(result)
    local checkpoints = {} ---@type kode.Checkpoint[]
    for number = #result.checkpoints, 1, -1 do
      checkpoints[#checkpoints + 1] = result.checkpoints[number]
    end
    picker.open({
      title = 'Restore the state before which prompt?',
      items = checkpoints,
      format = function(checkpoint)
        local files = #checkpoint.uris > 0 and ('  (%s)'):format(render.count(#checkpoint.uris, 'file')) or ''
        return ('%s  %s%s'):format(time.minute(checkpoint.timestamp), line(checkpoint.title), files)
      end,
      preview = function(checkpoint, show)
        local params = { checkpointId = checkpoint.checkpointId, what = 'files', dryRun = true }
        surface.connection:request('agent/checkpoint/restore', vim.tbl_extend('error', params, {
          sessionId = surface.session.id,
        }), function(problem, preview)
          local lines = problem and { problem.message } or restore_lines(preview)
          show({ lines = lines, filetype = 'diff' })
        end)
      end,
      choose = choose,
    })
  end)
end

return M
