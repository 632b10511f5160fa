--- One line of state: for the statusline, the winbars, and Neovim's own progress.
---
--- Rule: cheap enough for every redraw. Texts of the model are escaped, because `%` is code in a statusline. What does not fit
--- a window is left out as a whole, never cut in the middle.

local api = vim.api

local M = {}

---@type uv.uv_timer_t?
local timer

--- Something that is shown here has changed.
function M.changed()
  if timer then
    return
  end
  timer = assert(vim.uv.new_timer())
  timer:start(
    60,
    0,
    vim.schedule_wrap(function()
      if timer then
        timer:close()
        timer = nil
        M.redraw()
      end
    end)
  )
end

function M.redraw()
  for _, surface in pairs(require('kode.surface').all()) do
    M.busy(surface)
  end
  vim.cmd.redrawstatus({ bang = true })
end

--- Neovim's own flag for a buffer something is continuing in (0.12).
---@param surface kode.Surface
function M.busy(surface)
  if vim.fn.exists('&busy') == 1 and surface.transcript then
    vim.bo[surface.transcript.buffer].busy = surface.session.state == 'WORKING' and 1 or 0
  end
end

---@param text string
---@return string
function M.escape(text)
  return (text:gsub('%c', ' '):gsub('%%', '%%%%'))
end

--- The state of a session, and its highlight group.
---@param surface kode.Surface
---@return string word
---@return string group
function M.word(surface)
  local session, connection = surface.session, surface.connection
  if connection.status == 'stopped' then
    return connection.reason or 'stopped', 'KodeStateFailed'
  elseif connection.status ~= 'ready' then
    return connection.reason or 'starting', 'KodeStateFailed'
  elseif session:waiting() > 0 then
    return ('waits for you (%d)'):format(session:waiting()), 'KodeStateWaiting'
  elseif session.storage_problem then
    return session.storage_problem, 'KodeStateFailed'
  elseif session.retry then
    return ('retrying: %s'):format(session.retry.reason), 'KodeStateWaiting'
  elseif session.compacting then
    return 'compacting', 'KodeStateWorking'
  elseif session.state ~= 'READY' then
    return 'working', 'KodeStateWorking'
  elseif require('kode.models').problem(surface) then
    return 'no model (:Kode setup)', 'KodeStateFailed'
  elseif session.following then
    return 'open in another window (:Kode takeover)', 'KodeStateWaiting'
  elseif session.done and session.done.stopReason ~= 'end_turn' then
    return 'ended: ' .. session.done.stopReason:gsub('_', ' '), 'KodeStateWaiting'
  end
  return 'ready', 'KodeStateReady'
end

--- The name of the session's model: its profile, and the model where it is known and says more.
---@param surface kode.Surface
---@return string
local function model_name(surface)
  local session, info = surface.session, require('kode.models').of(surface)
  local name = session.model
  if info and info.model ~= name then
    name = name == 'main' and info.model or ('%s %s'):format(name, info.model)
  end
  return session.effort and ('%s %s'):format(name, session.effort) or name
end

--- Figures of a session, the most important first.
---@param surface kode.Surface
---@return string[]
local function figures(surface)
  local session, parts = surface.session, {} ---@type kode.Session, string[]
  -- A limit that ends the work soon counts more than the chosen mode and model.
  parts[1] = require('kode.limits').tightest(session)
  vim.list_extend(parts, { session.mode, model_name(surface) })
  if session.sandbox then
    table.insert(parts, 1, 'sandbox ' .. session.sandbox)
  end
  if session.worktree then
    table.insert(parts, 1, 'worktree')
  end
  if session.context_tokens and session.context_window and session.context_window > 0 then
    parts[#parts + 1] = ('%d%% full'):format(session.context_tokens * 100 / session.context_window)
  end
  if session.cost and session.cost > 0 then
    parts[#parts + 1] = ('$%.2f'):format(session.cost)
  end
  local open = vim.tbl_filter(function(todo)
    return todo.status ~= 'completed'
  end, session.todos)
  if #session.todos > 0 then
    parts[#parts + 1] = ('%d/%d done'):format(#session.todos - #open, #session.todos)
  end
  local tasks = vim.tbl_count(session.tasks)
  if tasks > 0 then
    parts[#parts + 1] = ('%d in background'):format(tasks)
  end
  if session.withheld > 0 then
    parts[#parts + 1] = ':Kode trust'
  end
  return parts
end

--- Joins as many parts as fit into a number of cells.
---@param parts string[]
---@param cells integer
---@return string
local function fitting(parts, cells)
  local shown = ''
  for _, part in ipairs(parts) do
    local longer = shown == '' and part or shown .. ' · ' .. part
    if api.nvim_strwidth(longer) > cells then
      break
    end
    shown = longer
  end
  return shown
end

---@return integer
local function drawn_window()
  return vim.g.statusline_winid or api.nvim_get_current_win()
end

---@return kode.Surface?
local function drawn_surface()
  local bufnr = api.nvim_win_get_buf(drawn_window())
  local transcript = require('kode.transcript').of(bufnr)
  return transcript and transcript:owner() or require('kode.prompt').surface_of(bufnr)
end

--- How to reach what waits, in the window that is drawn.
---@param surface kode.Surface
---@return string?
local function answer_hint(surface)
  if surface.session:waiting() == 0 then
    return nil
  end
  local bufnr = api.nvim_win_get_buf(drawn_window())
  local kind = surface.prompt and surface.prompt.buffer == bufnr and 'prompt' or 'transcript'
  local key = require('kode.maps').key(kind, 'next_question')
  return key and ('%s, then a number'):format(key) or ':Kode permission'
end

--- The winbar of a transcript; in any other window that of the session used last.
---@return string
function M.winbar()
  local own = drawn_surface()
  local surface = own or require('kode.surface').latest()
  if not surface then
    return ''
  end
  local word, group = M.word(surface)
  local width = api.nvim_win_get_width(drawn_window())
  word = require('kode.render').shorten(word, math.max(width - 3, 8))
  local parts = surface.connection.status == 'ready' and figures(surface) or {}
  local hint = own and answer_hint(surface)
  if hint then
    table.insert(parts, 1, hint)
  end
  local right = fitting(parts, width - api.nvim_strwidth(word) - 4)
  return ('%%#%s# %s %%*%%=%s '):format(group, M.escape(word), M.escape(right))
end

--- The winbar of a prompt: what waits for an answer, and the attachments of the next prompt.
---@return string
function M.prompt_winbar()
  local surface = drawn_surface()
  if not surface then
    return ''
  end
  local parts = { answer_hint(surface) } ---@type string[]
  for _, part in ipairs(surface.parts) do
    parts[#parts + 1] = '+ ' .. require('kode.attach').label(part)
  end
  local comments = package.loaded['kode.comments'] and #require('kode.comments').all(surface) or 0
  if comments > 0 then
    parts[#parts + 1] = require('kode.render').count(comments, 'comment')
  end
  local changes = surface.review:summary()
  if changes then
    parts[#parts + 1] = changes
  end
  local window = require('kode.context').window()
  local name = window and api.nvim_buf_get_name(api.nvim_win_get_buf(window)) or ''
  if name ~= '' then
    parts[#parts + 1] = vim.fn.fnamemodify(name, ':~:.')
  end
  local left = fitting(parts, api.nvim_win_get_width(drawn_window()) - 5)
  return (' %s%%=g? '):format(M.escape(left))
end

--- The statusline of the plugin's own windows.
---@return string
function M.window()
  local surface = drawn_surface()
  if not surface then
    return ''
  end
  local is_prompt = surface.prompt ~= nil and api.nvim_win_get_buf(drawn_window()) == surface.prompt.buffer
  local title = surface.session.title ~= '' and surface.session.title or 'New conversation'
  return is_prompt and ' Prompt%=%l,%c ' or (' %s%%<%%=%%P '):format(M.escape(title))
end

--- A short text for the statusline; empty before the first conversation.
---@return string
function M.statusline()
  local surface = require('kode.surface').latest()
  if not surface then
    return ''
  end
  local word = M.word(surface)
  local changes = surface.review:summary()
  return M.escape('kode: ' .. word .. (changes and ', ' .. changes or ''))
end

--- Neovim's own progress messages (0.12): off unless the user wants them.
---@param surface kode.Surface
---@param status "running"|"success"|"failed"|"cancel"
---@param text string
function M.progress(surface, status, text)
  if not require('kode.config').get().progress or vim.fn.has('nvim-0.12') == 0 then
    return
  end
  surface.progress_id = api.nvim_echo({ { text } }, false, {
    id = surface.progress_id,
    kind = 'progress',
    source = 'kode',
    title = 'Kode',
    status = status,
  })
end

return M
