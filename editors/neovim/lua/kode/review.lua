--- The agent's changes in their buffers: signs, removed text, going from one to the next, keeping, undoing.
---
--- Rule: a hunk is drawn on the version it was listed for, and extmarks move it with the text. A decision names hunks by their
--- ids, and the server carries it out. Only the user opens buffers.

local api = vim.api
local edits = require('kode.edits')
local highlight = require('kode.highlight')
local render = require('kode.render')

--- Milliseconds for which changed lists are collected.
local DELAY = 30
--- Requests for a list that was older than its buffer, and the milliseconds between them.
local RETRIES, RETRY_DELAY = 20, 100
--- Changed files above which all are listed in one request.
local FEW = 8
--- Lines of removed or proposed text that a hunk shows, at most.
local MAX_VIRTUAL = 50

---@class kode.Review
---@field surface kode.Surface
---@field files table<kode.Uri, kode.EditedFile>
---@field private stale table<kode.Uri, boolean>
---@field private timer? uv.uv_timer_t
---@field private retries table<kode.Uri, integer>
local Review = {}
Review.__index = Review

---@class kode.Anchor
---@field mark integer
---@field hunk kode.Hunk
---@field surface kode.Surface

local M = {}

---@type table<integer, kode.Anchor[]>
local anchors = {}

---@param surface kode.Surface
---@return kode.Review
function M.new(surface)
  return setmetatable({ surface = surface, files = {}, stale = {}, retries = {} }, Review)
end

---@param before string[]
---@param after string[]
---@return integer[][]
local function compare(before, after)
  ---@diagnostic disable-next-line: deprecated
  local diff = vim.text.diff or vim.diff -- 0.11 has it under the old name.
  local function text(lines)
    return #lines > 0 and table.concat(lines, '\n') .. '\n' or ''
  end
  return diff(text(before), text(after), { result_type = 'indices' }) --[[@as integer[][] ]]
end

---@param text string
---@return string[]
local function lines_of(text)
  if text == '' then
    return {}
  end
  local lines = vim.split(text, '\n', { plain = true })
  if lines[#lines] == '' then
    table.remove(lines)
  end
  return lines
end

---@param lines string[]
---@param group string
---@return table[]
local function virtual(lines, group)
  local shown = {}
  for number, line in ipairs(lines) do
    if number > MAX_VIRTUAL then
      shown[#shown + 1] = { { ('… %d more lines'):format(#lines - MAX_VIRTUAL), 'KodeMeta' } }
      break
    end
    shown[#shown + 1] = { { line == '' and ' ' or (line:gsub('\t', '    ')), group } }
  end
  return shown
end

---@param bufnr integer
---@param row integer
---@param options vim.api.keyset.set_extmark
---@return integer
local function mark(bufnr, row, options)
  local last = api.nvim_buf_line_count(bufnr) - 1
  options.strict = false
  if row > last then
    -- Text removed at the end of the file is shown below the last line.
    options.virt_lines_above = false
  end
  return api.nvim_buf_set_extmark(bufnr, highlight.review, math.min(row, last), 0, options)
end

local signs = {
  applied = { '┃', 'KodeSignApplied' },
  conflict = { '!', 'KodeSignConflict' },
  proposed = { '?', 'KodeSignProposed' },
}

---@param bufnr integer
---@param first integer
---@param last integer The row after the last.
---@param kind string
local function draw_signs(bufnr, first, last, kind)
  local sign = signs[kind] or signs.applied
  for row = first, math.max(last - 1, first) do
    mark(bufnr, row, {
      sign_text = first == last and '▁' or sign[1],
      sign_hl_group = sign[2],
      priority = 20,
    })
  end
end

--- Whether a diff already shows the removed text.
---@param bufnr integer
---@return boolean
local function is_diffed(bufnr)
  for _, window in ipairs(vim.fn.win_findbuf(bufnr)) do
    if vim.wo[window].diff then
      return true
    end
  end
  return false
end

--- What language servers say to a hunk, as a line below it.
---@param hunk kode.Hunk
---@return [string, string][][]
local function verdict(hunk)
  if not hunk.diagnostics then
    return {}
  end
  return { { { 'This change ' .. render.exact_line(hunk.diagnostics.summary) .. '.', 'DiagnosticWarn' } } }
end

--- Shows lines below a range of rows.
---@param bufnr integer
---@param last integer The row after the last.
---@param lines [string, string][][]
local function draw_below(bufnr, last, lines)
  if #lines > 0 then
    mark(bufnr, math.max(last - 1, 0), { virt_lines = lines, virt_lines_above = last == 0 })
  end
end

---@param bufnr integer
---@param hunk kode.Hunk
local function draw_applied(bufnr, hunk)
  local first, last = hunk.lineRange.start, hunk.lineRange['end']
  draw_signs(bufnr, first, last, hunk.state)
  draw_below(bufnr, last, verdict(hunk))
  if is_diffed(bufnr) then
    return
  end
  local before, after = lines_of(hunk.oldText), lines_of(hunk.newText)
  for _, change in ipairs(compare(before, after)) do
    local old_first, old_count = assert(change[1]), assert(change[2])
    local new_first, new_count = assert(change[3]), assert(change[4])
    if old_count > 0 then
      -- For removed text without replacement the diff names the line before.
      local row = first + (new_count > 0 and new_first - 1 or new_first) --[[@as integer]]
      mark(bufnr, row, {
        virt_lines = virtual(vim.list_slice(before, old_first, old_first + old_count - 1), 'KodeLineRemoved'),
        virt_lines_above = true,
      })
    end
  end
end

---@param bufnr integer
---@param hunk kode.Hunk
local function draw_proposed(bufnr, hunk)
  local first, last = hunk.lineRange.start, hunk.lineRange['end']
  draw_signs(bufnr, first, last, 'proposed')
  draw_below(bufnr, last, vim.list_extend(virtual(lines_of(hunk.newText), 'KodeLineAdded'), verdict(hunk)))
end

---@param bufnr integer
---@param file kode.EditedFile
---@param surface kode.Surface
local function draw_file(bufnr, file, surface)
  local list = anchors[bufnr]
  for _, hunk in ipairs(file.hunks) do
    local last = math.min(hunk.lineRange['end'], api.nvim_buf_line_count(bufnr))
    list[#list + 1] = {
      hunk = hunk,
      surface = surface,
      mark = mark(bufnr, hunk.lineRange.start, { end_row = math.max(last, hunk.lineRange.start), end_col = 0 }),
    }
    if hunk.state == 'proposed' then
      draw_proposed(bufnr, hunk)
    elseif hunk.kind == 'text' then
      draw_applied(bufnr, hunk)
    else
      draw_signs(bufnr, hunk.lineRange.start, hunk.lineRange['end'], hunk.state)
    end
  end
end

--- The reviewed file of a session that a buffer shows.
---@param review kode.Review
---@param bufnr integer
---@return kode.EditedFile?
local function file_of(review, bufnr)
  local uri = vim.uri_from_bufnr(bufnr)
  local file = review.files[uri]
  if file then
    return file
  end
  -- The server may spell the URI in another way.
  for other, candidate in pairs(review.files) do
    if edits.buffer(other) == bufnr then
      return candidate
    end
  end
end

--- Shows the text that was removed above the first line: a window at the top has no room for it by itself.
---@param bufnr integer
local function show_first(bufnr)
  local above = 0
  for _, found in ipairs(api.nvim_buf_get_extmarks(bufnr, highlight.review, { 0, 0 }, { 0, -1 }, { details = true })) do
    local details = found[4] or {}
    above = above + (details.virt_lines_above and #(details.virt_lines or {}) or 0)
  end
  for _, window in ipairs(above > 0 and vim.fn.win_findbuf(bufnr) or {}) do
    api.nvim_win_call(window, function()
      local view = vim.fn.winsaveview()
      if view.topline == 1 and view.topfill == 0 then
        local limit = math.floor(api.nvim_win_get_height(window) / 2)
        vim.fn.winrestview({ topline = 1, topfill = math.min(above, limit) })
      end
    end)
  end
end

--- Draws the changes to review in a buffer.
---@param bufnr integer
function M.draw(bufnr)
  if not api.nvim_buf_is_loaded(bufnr) or vim.bo[bufnr].buftype ~= '' then
    return
  end
  local had = anchors[bufnr] and #anchors[bufnr] > 0
  api.nvim_buf_clear_namespace(bufnr, highlight.review, 0, -1)
  anchors[bufnr] = {}
  for _, surface in pairs(require('kode.surface').all()) do
    local file = file_of(surface.review, bufnr)
    if file then
      local version = vim.lsp.util.buf_versions[bufnr]
      -- The recorded text of a session that another window writes may differ from the buffer.
      local is_closed = file.version == nil and not surface.session.following
      if is_closed or file.version == version then
        surface.review.retries[file.uri] = nil
        draw_file(bufnr, file, surface)
      else
        surface.review:retry(file.uri)
      end
    end
  end
  local has = #anchors[bufnr] > 0
  if has ~= (had or false) then
    require('kode.maps').review(bufnr, has)
  end
  show_first(bufnr)
end

--- Requests a list again that was made of an older text.
---@param uri kode.Uri
function Review:retry(uri)
  local count = (self.retries[uri] or 0) + 1
  self.retries[uri] = count
  if count <= RETRIES then
    vim.defer_fn(function()
      self:changed({ uri })
    end, RETRY_DELAY)
  end
end

--- Marks the lists of these files as out of date.
---@param uris kode.Uri[]
function Review:changed(uris)
  for _, uri in ipairs(uris) do
    self.stale[uri] = true
  end
  if self.timer then
    return
  end
  self.timer = assert(vim.uv.new_timer())
  self.timer:start(
    DELAY,
    0,
    vim.schedule_wrap(function()
      if self.timer then
        self.timer:close()
        self.timer = nil
        self:list()
      end
    end)
  )
end

---@private
function Review:list()
  local uris = vim.tbl_keys(self.stale)
  self.stale = {}
  if #uris > FEW then
    return self:refresh()
  end
  for _, uri in ipairs(uris) do
    self.surface:ask('agent/edits/list', { uri = uri }, function(result)
      self.files[uri] = nil
      for _, file in ipairs(result.files) do
        self.files[file.uri] = file
      end
      self:show({ uri })
    end)
  end
end

--- Lists all files again.
---@param callback? fun()
function Review:refresh(callback)
  self.surface:ask('agent/edits/list', {}, function(result)
    local before = self.files
    self.files = {}
    local uris = vim.tbl_keys(before)
    for _, file in ipairs(result.files) do
      self.files[file.uri] = file
      if not before[file.uri] then
        uris[#uris + 1] = file.uri
      end
    end
    self:show(uris)
    if callback then
      callback()
    end
  end)
end

---@private
---@param uris kode.Uri[]
function Review:show(uris)
  for _, uri in ipairs(uris) do
    local bufnr = edits.buffer(uri)
    if bufnr then
      M.draw(bufnr)
    end
  end
  require('kode.events').emit('ReviewChanged', { session_id = self.surface.session.id, uris = uris })
  require('kode.status').changed()
end

function Review:clear()
  local uris = vim.tbl_keys(self.files)
  self.files = {}
  for _, uri in ipairs(uris) do
    local bufnr = edits.buffer(uri)
    if bufnr then
      M.draw(bufnr)
    end
  end
end

--- The files in the order of their names.
---@return kode.EditedFile[]
function Review:sorted()
  local files = vim.tbl_values(self.files)
  table.sort(files, function(a, b)
    return a.path < b.path
  end)
  return files
end

--- The changes to review in a few words, `2 files +3 -1`; nil if none exist.
---@return string?
function Review:summary()
  local files, added, removed = 0, 0, 0
  for _, file in pairs(self.files) do
    files, added, removed = files + 1, added + file.added, removed + file.removed
  end
  return files > 0 and ('%d file%s +%d -%d'):format(files, files == 1 and '' or 's', added, removed) or nil
end

--- The first and last row of an anchor.
---@param bufnr integer
---@param anchor kode.Anchor
---@return integer first
---@return integer last
local function rows(bufnr, anchor)
  local place = api.nvim_buf_get_extmark_by_id(bufnr, highlight.review, anchor.mark, { details = true })
  local first = place[1] or 0
  local details = place[3] or {}
  local last = details.end_row or first
  if details.end_col == 0 and last > first then
    last = last - 1
  end
  return first, last
end

--- The anchors of a buffer in the order of their places.
---@param bufnr integer
---@return { first: integer, last: integer, anchor: kode.Anchor }[]
local function places(bufnr)
  local list = {}
  for _, anchor in ipairs(anchors[bufnr] or {}) do
    local first, last = rows(bufnr, anchor)
    list[#list + 1] = { first = first, last = last, anchor = anchor }
  end
  table.sort(list, function(a, b)
    return a.first < b.first
  end)
  return list
end

--- The hunks that touch some rows of a buffer.
---@param bufnr integer
---@param first integer
---@param last integer
---@return kode.Anchor[]
function M.at(bufnr, first, last)
  local found = {}
  for _, place in ipairs(places(bufnr)) do
    if place.first <= last and place.last >= first then
      found[#found + 1] = place.anchor
    end
  end
  return found
end

--- The next file with hunks in a direction, after the buffer's own.
---@param bufnr integer
---@param direction 1|-1
---@return kode.EditedFile?
local function next_file(bufnr, direction)
  local surface = require('kode.surface').current()
  if not surface then
    return nil
  end
  local files = surface.review:sorted()
  local own = vim.uri_from_bufnr(bufnr)
  local at = direction == 1 and 0 or #files + 1
  for number, file in ipairs(files) do
    if file.uri == own or edits.buffer(file.uri) == bufnr then
      at = number
    end
  end
  return files[at + direction]
end

--- Goes to a hunk of a file in the current window.
---@param file kode.EditedFile
---@param hunk? kode.Hunk
function M.go(file, hunk)
  local bufnr = edits.buffer(file.uri) or vim.fn.bufadd(vim.uri_to_fname(file.uri))
  vim.cmd("normal! m'")
  vim.bo[bufnr].buflisted = true
  api.nvim_win_set_buf(0, bufnr)
  if hunk then
    local row = math.min(hunk.lineRange.start + 1, api.nvim_buf_line_count(bufnr))
    api.nvim_win_set_cursor(0, { row, 0 })
  end
end

--- Goes to the next hunk, in this buffer or another file.
---@param direction 1|-1
function M.jump(direction)
  local bufnr = api.nvim_get_current_buf()
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local list = places(bufnr)
  for number = 1, #list do
    local place = list[direction == 1 and number or #list + 1 - number]
    local is_beyond = direction == 1 and place.first > row or direction == -1 and place.first < row
    if is_beyond then
      vim.cmd("normal! m'")
      return api.nvim_win_set_cursor(0, { place.first + 1, 0 })
    end
  end
  local file = next_file(bufnr, direction)
  if not file then
    return vim.notify('kode: no more changes', vim.log.levels.INFO)
  end
  M.go(file, file.hunks[direction == 1 and 1 or #file.hunks])
end

--- The action that keeps or undoes a hunk, by its state.
---@type table<"keep"|"undo", table<kode.HunkState, kode.ReviewAction>>
local actions = {
  keep = { proposed = 'accept', applied = 'keep', conflict = 'keep' },
  undo = { proposed = 'reject', applied = 'undo', conflict = 'undo' },
}

--- Resolves hunks by their ids.
---@param wish "keep"|"undo"
---@param surface kode.Surface
---@param hunks kode.Hunk[]
---@param force boolean
local function resolve_hunks(wish, surface, hunks, force)
  ---@type table<kode.ReviewAction, kode.HunkId[]>
  local by_action = {}
  for _, hunk in ipairs(hunks) do
    local action = actions[wish][hunk.state]
    if action then
      by_action[action] = by_action[action] or {}
      table.insert(by_action[action], hunk.hunkId)
    end
  end
  for action, ids in pairs(by_action) do
    surface.connection:ask('agent/edits/resolve', {
      selection = { type = 'hunks', sessionId = surface.session.id, hunkIds = ids },
      action = action,
      amended = force and 'undo' or nil,
    }, function() end)
  end
end

--- The hunk of the entry under the cursor of a quickfix or location list.
---@return kode.Surface?
---@return kode.Hunk?
local function quickfix_hunk()
  if vim.bo.buftype ~= 'quickfix' then
    return nil
  end
  local is_of_window = vim.fn.getwininfo(api.nvim_get_current_win())[1].loclist == 1
  local entries = is_of_window and vim.fn.getloclist(0) or vim.fn.getqflist()
  local entry = entries[api.nvim_win_get_cursor(0)[1]]
  local data = entry and type(entry.user_data) == 'table' and entry.user_data.kode
  local surface = data and require('kode.surface').all()[data.session]
  for _, file in pairs(surface and surface.review.files or {}) do
    for _, hunk in ipairs(file.hunks) do
      if hunk.hunkId == data.hunk then
        return surface, hunk
      end
    end
  end
end

--- Keeps or undoes the hunks in some rows of the current buffer, or of the quickfix entry under the cursor.
---@param wish "keep"|"undo"
---@param first integer
---@param last integer
---@param force? boolean
function M.resolve_rows(wish, first, last, force)
  local surface, hunk = quickfix_hunk()
  if surface and hunk then
    return resolve_hunks(wish, surface, { hunk }, force or false)
  end
  local by_session = {}
  for _, anchor in ipairs(M.at(api.nvim_get_current_buf(), first, last)) do
    local list = by_session[anchor.surface] or {}
    list[#list + 1] = anchor.hunk
    by_session[anchor.surface] = list
  end
  if not next(by_session) then
    return vim.notify('kode: no change here', vim.log.levels.INFO)
  end
  for owner, hunks in pairs(by_session) do
    resolve_hunks(wish, owner, hunks, force or false)
  end
end

---@type "keep"|"undo"
local repeated = 'keep'

--- The 'operatorfunc' of keeping and undoing, which makes them repeatable by `.`.
function M.operator()
  local first, last = api.nvim_buf_get_mark(0, '[')[1], api.nvim_buf_get_mark(0, ']')[1]
  M.resolve_rows(repeated, first - 1, last - 1)
end

--- The keys of a `<Plug>` map that keeps or undoes.
---@param wish "keep"|"undo"
---@return string
function M.repeatable(wish)
  repeated = wish
  vim.o.operatorfunc = "v:lua.require'kode.review'.operator"
  return api.nvim_get_mode().mode:match('^[vV\22]') and 'g@' or 'g@l'
end

--- Keeps or undoes all of a file, of the last turn, or of a session.
---@param wish "keep"|"undo"
---@param what "file"|"turn"|"all"
---@param surface kode.Surface
---@param force? boolean
function M.resolve_all(wish, what, surface, force)
  local own = vim.uri_from_bufnr(0)
  local turn
  for _, item in ipairs(surface.session.items) do
    turn = item.turnId
  end
  local hunks = {}
  for _, file in pairs(surface.review.files) do
    if what ~= 'file' or file.uri == own or edits.buffer(file.uri) == api.nvim_get_current_buf() then
      for _, hunk in ipairs(file.hunks) do
        if what ~= 'turn' or hunk.turnId == turn then
          hunks[#hunks + 1] = hunk
        end
      end
    end
  end
  if #hunks == 0 then
    return vim.notify('kode: no changes to decide', vim.log.levels.INFO)
  end
  resolve_hunks(wish, surface, hunks, force or false)
end

---@param surface kode.Surface
---@param file kode.EditedFile
---@param hunk kode.Hunk
---@return vim.quickfix.entry
local function entry_of(surface, file, hunk)
  local first = vim.split(hunk.newText ~= '' and hunk.newText or hunk.oldText, '\n', { plain = true })[1]
  return {
    filename = vim.uri_to_fname(file.uri),
    lnum = hunk.lineRange.start + 1,
    end_lnum = math.max(hunk.lineRange['end'], hunk.lineRange.start + 1),
    type = hunk.state == 'conflict' and 'E' or hunk.state == 'proposed' and 'W' or 'I',
    text = ('%s%s +%d -%d  %s%s'):format(
      file.reviewed and 'reviewed, ' or '',
      hunk.state,
      hunk.added,
      hunk.removed,
      vim.trim(first or ''),
      hunk.diagnostics and ('  (%s)'):format(render.exact_line(hunk.diagnostics.summary)) or ''
    ),
    user_data = { kode = { session = surface.session.id, hunk = hunk.hunkId } },
  }
end

--- The entry of what the changes of a file add and fix in its other lines.
---@param file kode.EditedFile
---@param diagnostics kode.ProposedDiagnostics
---@return vim.quickfix.entry
local function other_lines(file, diagnostics)
  local summary = render.exact_line(diagnostics.summary)
  local first = render.exact_line(diagnostics.lines[1] or '')
  return {
    filename = vim.uri_to_fname(file.uri),
    lnum = 1,
    type = 'W',
    text = ('in other lines  %s: %s'):format(summary, first),
  }
end

--- Passes all hunks, or those of one buffer, as entries of a quickfix or location list.
---@param surface kode.Surface
---@param bufnr? integer
---@param callback fun(entries: vim.quickfix.entry[])
function M.list(surface, bufnr, callback)
  surface.review:refresh(function()
    local entries = {}
    for _, file in ipairs(surface.review:sorted()) do
      if not bufnr or edits.buffer(file.uri) == bufnr then
        for _, hunk in ipairs(file.hunks) do
          entries[#entries + 1] = entry_of(surface, file, hunk)
        end
        if file.diagnostics then
          entries[#entries + 1] = other_lines(file, file.diagnostics)
        end
      end
    end
    callback(entries)
  end)
end

--- Marks the changes of a buffer's file as reviewed, or removes the mark.
---@param bufnr integer
function M.mark(bufnr)
  local surface = require('kode.surface').current()
  for _, file in ipairs(surface and surface.review:sorted() or {}) do
    if surface and edits.buffer(file.uri) == bufnr then
      local reviewed = not file.reviewed
      return surface:ask('agent/edits/review', { uri = file.uri, reviewed = reviewed }, function()
        local said = ('kode: %s is %s'):format(file.path, reviewed and 'reviewed' or 'not reviewed any more')
        vim.notify(said, vim.log.levels.INFO)
      end)
    end
  end
  vim.notify('kode: no change of the agent in this buffer', vim.log.levels.INFO)
end

--- Undoes the newest decision or restore.
---@param surface kode.Surface
function M.revert(surface)
  surface:ask('agent/edits/revert', { resolutionId = surface.last_resolution })
end

api.nvim_create_autocmd({ 'BufReadPost', 'BufWinEnter' }, {
  group = api.nvim_create_augroup('kode.review', {}),
  desc = 'kode: show the changes to review in an opened buffer',
  callback = function(event)
    if next(require('kode.surface').all()) then
      vim.schedule(function()
        if api.nvim_buf_is_valid(event.buf) then
          M.draw(event.buf)
        end
      end)
    end
  end,
})
api.nvim_create_autocmd({ 'OptionSet', 'WinClosed' }, {
  group = 'kode.review',
  desc = 'kode: show removed text again where no diff does',
  callback = function(event)
    if event.event == 'WinClosed' or event.match == 'diff' then
      vim.schedule(function()
        for bufnr, list in pairs(anchors) do
          if #list > 0 then
            M.draw(bufnr)
          end
        end
      end)
    end
  end,
})
api.nvim_create_autocmd('BufWipeout', {
  group = 'kode.review',
  desc = 'kode: forget a wiped buffer',
  callback = function(event)
    anchors[event.buf] = nil
  end,
})

return M
