--- One line of state: for the statusline, the winbars, and Neovim's own progress.
---
--- Rule: cheap enough to be asked with every redraw, and texts of the model are escaped: in a statusline `%` is code.

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

--- Neovim's own flag for a buffer something is going on in (0.12).
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

--- What a session is doing, in a word, and its highlight group.
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
    return ('tries again: %s'):format(session.retry.reason), 'KodeStateWaiting'
  elseif session.compacting then
    return 'makes room', 'KodeStateWorking'
  elseif session.state ~= 'READY' then
    return 'working', 'KodeStateWorking'
  elseif session.following then
    return 'open in another window (:Kode takeover)', 'KodeStateWaiting'
  elseif session.done and session.done.stopReason ~= 'end_turn' then
    return 'ended: ' .. session.done.stopReason:gsub('_', ' '), 'KodeStateWaiting'
  end
  return 'ready', 'KodeStateReady'
end

---@param session kode.Session
---@return string[]
local function figures(session)
  local parts = { session.mode, session.model .. (session.effort and ' ' .. session.effort or '') }
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

---@return kode.Surface?
local function drawn_surface()
  local window = vim.g.statusline_winid or api.nvim_get_current_win()
  local bufnr = api.nvim_win_get_buf(window)
  local transcript = require('kode.transcript').of(bufnr)
  return transcript and transcript:owner() or require('kode.prompt').surface_of(bufnr)
end

--- The winbar of a transcript; in any other window it speaks of the session that was used last.
---@return string
function M.winbar()
  local surface = drawn_surface() or require('kode.surface').latest()
  if not surface then
    return ''
  end
  local word, group = M.word(surface)
  local is_ready = surface.connection.status == 'ready'
  local figure = is_ready and table.concat(figures(surface.session), ' · ') or ''
  return ('%%#%s# %s %%*%%<%%=%s '):format(group, M.escape(word), M.escape(figure))
end

--- The winbar of a prompt: what goes with it.
---@return string
function M.prompt_winbar()
  local surface = drawn_surface()
  if not surface then
    return ''
  end
  local window = require('kode.context').window()
  local name = window and api.nvim_buf_get_name(api.nvim_win_get_buf(window)) or ''
  local parts = {}
  if name ~= '' then
    parts[1] = vim.fn.fnamemodify(name, ':~:.')
  end
  for _, part in ipairs(surface.parts) do
    parts[#parts + 1] = '+ ' .. require('kode.attach').label(part)
  end
  local comments = package.loaded['kode.comments'] and #require('kode.comments').all(surface) or 0
  if comments > 0 then
    parts[#parts + 1] = comments == 1 and '1 comment' or comments .. ' comments'
  end
  local changes = surface.review:summary()
  if changes then
    parts[#parts + 1] = changes
  end
  return (' %s%%=g? '):format(M.escape(table.concat(parts, ' · ')))
end

--- The statusline of the plugin's own windows: the names of their buffers say nothing to people.
---@return string
function M.window()
  local surface = drawn_surface()
  if not surface then
    return ''
  end
  local window = vim.g.statusline_winid or api.nvim_get_current_win()
  local is_prompt = surface.prompt ~= nil and api.nvim_win_get_buf(window) == surface.prompt.buffer
  local title = surface.session.title ~= '' and surface.session.title or 'New conversation'
  return is_prompt and ' Prompt%=%l,%c ' or (' %s%%<%%=%%P '):format(M.escape(title))
end

--- One word for the statusline: empty while nothing was begun.
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
