--- The buffer that shows a session.
---
--- Rule: changes are collected and drawn at most once in an interval, and only the lines that differ are touched. No window
--- but one that stands on the last line is moved, and a prompt never slides under a cursor that follows.

local api = vim.api
local config = require('kode.config')
local highlight = require('kode.highlight')
local pending = require('kode.pending')
local render = require('kode.render')

--- The row of a message at which its text begins.
local TEXT_ROW = 2
--- Milliseconds between the highlighting of two messages.
local HIGHLIGHT_PAUSE = 10
--- Bytes of an output that an open card is made of.
local MAX_OUTPUT = 65536

---@class kode.DrawnBlock: kode.Block
---@field item kode.Item

---@class kode.Transcript
---@field buffer integer
---@field session kode.Session
---@field private surface kode.Surface
---@field private head string[]
---@field private blocks kode.DrawnBlock[]
---@field private places table<kode.ItemId, integer>
---@field private height integer Lines of head and blocks.
---@field private footers kode.Footer[]
---@field private footer_height integer
---@field private footer_since integer When the footers last moved, in milliseconds.
---@field private expanded table<kode.ItemId, boolean>
---@field private outputs table<kode.ItemId, string> What open cards of finished calls have put out.
---@field private dirty table<kode.ItemId, boolean>
---@field private grown table<kode.ItemId, string[]>
---@field private added kode.Item[]
---@field private footer_dirty boolean
---@field private timer? uv.uv_timer_t
---@field private last_draw integer
---@field private to_highlight kode.DrawnBlock[]
local Transcript = {}
Transcript.__index = Transcript

---@type table<integer, kode.Transcript>
local by_buffer = {}

--- The transcript that a buffer shows.
---@param bufnr integer
---@return kode.Transcript?
function Transcript.of(bufnr)
  return by_buffer[bufnr]
end

---@param surface kode.Surface
---@return kode.Transcript
function Transcript.new(surface)
  local session = surface.session
  local self = setmetatable({
    buffer = api.nvim_create_buf(false, true),
    session = session,
    surface = surface,
    expanded = {},
    outputs = {},
    footers = {},
    footer_height = 0,
    footer_since = 0,
    last_draw = 0,
    to_highlight = {},
  }, Transcript)
  by_buffer[self.buffer] = self
  api.nvim_buf_set_name(self.buffer, 'kode://session/' .. session.id)
  local options = vim.bo[self.buffer]
  options.bufhidden = 'hide'
  options.modifiable = false
  options.swapfile = false
  options.undolevels = -1
  options.filetype = 'kode'
  require('kode.maps').transcript(self)
  api.nvim_create_autocmd('BufWipeout', {
    buffer = self.buffer,
    callback = function()
      self:stop()
      by_buffer[self.buffer] = nil
      surface.transcript = nil
    end,
  })
  self:draw_all()
  return self
end

function Transcript:stop()
  if self.timer then
    self.timer:stop()
    self.timer:close()
    self.timer = nil
  end
end

---@private
---@return boolean
function Transcript:is_valid()
  return api.nvim_buf_is_valid(self.buffer)
end

---@private
---@param change fun()
function Transcript:unlocked(change)
  vim.bo[self.buffer].modifiable = true
  local ok, problem = pcall(change)
  vim.bo[self.buffer].modifiable = false
  if not ok then
    error(problem, 0)
  end
end

---@private
---@param row integer
---@param block kode.Block
function Transcript:mark(row, block)
  local last = row + #block.lines
  api.nvim_buf_clear_namespace(self.buffer, highlight.transcript, row, last)
  for _, mark in ipairs(block.marks) do
    api.nvim_buf_set_extmark(self.buffer, highlight.transcript, row + mark.row, mark.column, mark.options)
  end
end

--- Puts a block in the place of `old` lines that begin at a row; lines that stay are not touched.
---@private
---@param row integer
---@param old string[]
---@param block kode.Block
function Transcript:replace(row, old, block)
  local new = block.lines
  local first, last = 1, 0
  while first <= #old and first <= #new and old[first] == new[first] do
    first = first + 1
  end
  while last < #old - first + 1 and last < #new - first + 1 and old[#old - last] == new[#new - last] do
    last = last + 1
  end
  if first <= #old - last or first <= #new - last then
    local lines = vim.list_slice(new, first, #new - last)
    api.nvim_buf_set_lines(self.buffer, row + first - 1, row + #old - last, false, lines)
  end
  self:mark(row, block)
end

---@private
---@return string[]
function Transcript:head_lines()
  local title = self.session.title ~= '' and self.session.title or 'New conversation'
  local lines = { '# ' .. render.line(title) } ---@type string[]
  if self.session.more_items then
    lines[2] = 'There is more above: `go` shows it.'
  end
  return lines
end

---@private
---@param item kode.Item
---@return kode.DrawnBlock
function Transcript:render(item)
  local settings = config.get().transcript
  local expanded = self.expanded[item.itemId]
  if expanded == nil then
    expanded = render.opens_itself(item)
  end
  local body = item.body
  local block = render.item(item, {
    expanded = expanded,
    linear = settings.linear,
    ascii = settings.ascii,
    card_lines = settings.card_lines,
    output = self.outputs[item.itemId] or self.session.progress[item.itemId],
    subagent = body.type == 'toolCall' and self.session.subagents[body.callId] or nil,
  }) --[[@as kode.DrawnBlock]]
  block.item = item
  return block
end

--- Draws all of it anew.
function Transcript:draw_all()
  if not self:is_valid() then
    return
  end
  self.dirty, self.grown, self.added, self.footer_dirty = {}, {}, {}, false
  self.head = self:head_lines()
  self.blocks, self.places = {}, {}
  local lines = vim.list_slice(self.head)
  for place, item in ipairs(self.session.items) do
    local block = self:render(item)
    self.blocks[place] = block
    self.places[item.itemId] = place
    vim.list_extend(lines, block.lines)
  end
  self.height = #lines
  local following = self:following()
  self:unlocked(function()
    api.nvim_buf_set_lines(self.buffer, 0, -1, false, lines)
    api.nvim_buf_clear_namespace(self.buffer, highlight.transcript, 0, -1)
    api.nvim_buf_clear_namespace(self.buffer, highlight.markdown, 0, -1)
    self:mark(0, { lines = self.head, marks = self:head_marks() })
    local row = #self.head
    for _, block in ipairs(self.blocks) do
      self:mark(row, block)
      row = row + #block.lines
    end
    self.footers, self.footer_height = {}, 0
    self:draw_footers()
  end)
  self.to_highlight = {}
  local lines_left = config.get().transcript.highlight_lines
  for place = #self.blocks, 1, -1 do
    lines_left = lines_left - #self.blocks[place].lines
    if lines_left < 0 then
      break
    end
    self:want_highlight(self.blocks[place])
  end
  self:follow(following)
end

---@private
---@return kode.Mark[]
function Transcript:head_marks()
  ---@type kode.Mark[]
  local marks = { { row = 0, column = 0, options = { end_col = #self.head[1], hl_group = 'KodeTitle' } } }
  if self.head[2] then
    marks[2] = { row = 1, column = 0, options = { end_col = #self.head[2], hl_group = 'KodeMeta' } }
  end
  return marks
end

---@private
function Transcript:draw_head()
  local old = self.head
  self.head = self:head_lines()
  if not vim.deep_equal(old, self.head) then
    self:replace(0, old, { lines = self.head, marks = self:head_marks() })
    self.height = self.height + #self.head - #old
  end
end

--- The row that a block begins at, counted from the nearer end.
---@private
---@param place integer
---@return integer
function Transcript:row_of(place)
  if place > #self.blocks / 2 then
    local row = self.height
    for number = #self.blocks, place, -1 do
      row = row - #self.blocks[number].lines
    end
    return row
  end
  local row = #self.head
  for number = 1, place - 1 do
    row = row + #self.blocks[number].lines
  end
  return row
end

--- The block at a row, its place and its first row.
---@param row integer
---@return kode.DrawnBlock?
---@return integer? place
---@return integer? first
function Transcript:block_at(row)
  if row >= self.height or row < #self.head then
    return nil
  end
  local first = self.height
  for place = #self.blocks, 1, -1 do
    first = first - #self.blocks[place].lines
    if row >= first then
      return self.blocks[place], place, first
    end
  end
end

--- What waits for the user at a row.
---@param row integer
---@return kode.Footer?
function Transcript:footer_at(row)
  local first = self.height
  for _, footer in ipairs(self.footers) do
    -- The empty line above it is not it.
    if row > first and row < first + #footer.lines then
      return footer
    end
    first = first + #footer.lines
  end
end

---@return kode.Surface
function Transcript:owner()
  return self.surface
end

--- The last row of the transcript itself.
---@return integer
function Transcript:last_row()
  return self.height - 1
end

--- Whether a prompt has stood where it is for long enough to be answered by a key.
---@return boolean
function Transcript:is_settled()
  return vim.uv.now() - self.footer_since >= config.get().settle
end

---@private
function Transcript:draw_footers()
  local old = {}
  for _, footer in ipairs(self.footers) do
    vim.list_extend(old, footer.lines)
  end
  local before = vim.tbl_map(function(footer)
    return footer.id
  end, self.footers)
  self.footers = pending.footers(self.session)
  local all = { lines = {}, marks = {} }
  for _, footer in ipairs(self.footers) do
    for _, mark in ipairs(footer.marks) do
      table.insert(all.marks, { row = mark.row + #all.lines, column = mark.column, options = mark.options })
    end
    vim.list_extend(all.lines, footer.lines)
  end
  self:replace(self.height, old, all)
  self.footer_height = #all.lines
  local now = vim.tbl_map(function(footer)
    return footer.id
  end, self.footers)
  if not vim.deep_equal(before, now) then
    self.footer_since = vim.uv.now()
  end
end

---@private
---@param place integer
function Transcript:redraw_block(place)
  local old = self.blocks[place]
  local block = self:render(self.session:item(old.item.itemId) or old.item)
  local row = self:row_of(place)
  api.nvim_buf_clear_namespace(self.buffer, highlight.markdown, row, row + #old.lines)
  self:replace(row, old.lines, block)
  self.blocks[place] = block
  self:want_highlight(block)
  self.height = self.height + #block.lines - #old.lines
end

---@private
---@param item kode.Item
function Transcript:append_block(item)
  -- It may have changed since it came.
  local block = self:render(self.session:item(item.itemId) or item)
  self:replace(self.height, {}, block)
  self.blocks[#self.blocks + 1] = block
  self.places[item.itemId] = #self.blocks
  self:want_highlight(block)
  self.height = self.height + #block.lines
end

--- Puts text at the end of a block.
---@private
---@param place integer
---@param text string
function Transcript:grow_block(place, text)
  local block = self.blocks[place]
  local row = self:row_of(place) + #block.lines - 1
  local last = block.lines[#block.lines]
  local lines = render.lines(text)
  api.nvim_buf_set_text(self.buffer, row, #last, row, #last, lines)
  block.lines[#block.lines] = last .. lines[1]
  for number = 2, #lines do
    block.lines[#block.lines + 1] = lines[number]
  end
  self.height = self.height + #lines - 1
end

--- The windows whose cursor is on the last line, and so follow what comes.
---@private
---@return integer[]
function Transcript:following()
  local windows = {}
  local current = api.nvim_get_current_win()
  local lines = api.nvim_buf_line_count(self.buffer)
  local last = math.max(lines - self.footer_height, 1)
  for _, window in ipairs(vim.fn.win_findbuf(self.buffer)) do
    local is_selecting = window == current and not api.nvim_get_mode().mode:match('^[ni]')
    if not is_selecting and api.nvim_win_get_cursor(window)[1] == last then
      windows[#windows + 1] = window
    end
  end
  return windows
end

--- Moves those windows to the last line of the transcript, with what waits below it in sight.
---@private
---@param windows integer[]
function Transcript:follow(windows)
  local total = self.height + self.footer_height
  for _, window in ipairs(windows) do
    if api.nvim_win_is_valid(window) then
      api.nvim_win_set_cursor(window, { self.height, 0 })
      local info = vim.fn.getwininfo(window)[1]
      local height = info.height - info.winbar
      local top = math.max(total - height, 0)
      while
        top < self.height - 1
        and api.nvim_win_text_height(window, { start_row = top, end_row = total - 1 }).all > height
      do
        top = top + 1
      end
      api.nvim_win_call(window, function()
        if vim.fn.line('w0') ~= top + 1 then
          vim.fn.winrestview({ topline = top + 1 })
        end
      end)
    end
  end
end

--- Draws what has come since the last time.
function Transcript:draw()
  if not self:is_valid() then
    return
  end
  local following = self:following()
  local added, dirty, grown = self.added, self.dirty, self.grown
  self.added, self.dirty, self.grown = {}, {}, {}
  self:unlocked(function()
    self:draw_head()
    for _, item in ipairs(added) do
      if not self.places[item.itemId] then
        self:append_block(item)
        dirty[item.itemId], grown[item.itemId] = nil, nil
      end
    end
    for id in pairs(dirty) do
      local place = self.places[id]
      if place then
        self:redraw_block(place)
        grown[id] = nil
      end
    end
    for id, texts in pairs(grown) do
      local place = self.places[id]
      if place and self.blocks[place].grows then
        self:grow_block(place, table.concat(texts))
      end
    end
    if self.footer_dirty then
      self.footer_dirty = false
      self:draw_footers()
    end
  end)
  self:follow(following)
end

--- Draws soon: at once when nothing was drawn for an interval.
---@private
function Transcript:schedule()
  if self.timer then
    return
  end
  local interval = config.get().transcript.interval
  local wait = math.max(self.last_draw + interval - vim.uv.now(), 0)
  self.timer = assert(vim.uv.new_timer())
  self.timer:start(
    wait,
    0,
    vim.schedule_wrap(function()
      if self.timer then
        self:stop()
        self:draw()
        self.last_draw = vim.uv.now()
      end
    end)
  )
end

--- A change of the session.
---@param change any One of `kode.Change`, whose `kind` says which.
function Transcript:on_change(change)
  local kind = change.kind
  if kind == 'reset' or kind == 'older' or kind == 'trimmed' then
    self:stop()
    self:draw_all()
    return
  elseif kind == 'rewound' then
    self:draw()
    self:cut(change.from)
  elseif kind == 'item' then
    local body = change.item.body
    if body.type == 'toolCall' and body.endedAt and self:is_expanded(change.item) then
      self:want_output(change.item)
    end
    if change.added then
      self.added[#self.added + 1] = change.item
    else
      self.dirty[change.item.itemId] = true
    end
  elseif kind == 'progress' then
    if self:is_expanded(change.item) or self.session.subagents[change.item.body.callId] then
      self.dirty[change.item.itemId] = true
    end
  elseif kind == 'text' then
    local texts = self.grown[change.item.itemId] or {}
    texts[#texts + 1] = change.text
    self.grown[change.item.itemId] = texts
  elseif kind == 'pending' then
    self.footer_dirty = true
  elseif kind ~= 'status' then
    return
  end
  self:schedule()
end

--- Takes away the blocks from a place on.
---@private
---@param from integer
function Transcript:cut(from)
  if from > #self.blocks then
    return
  end
  local row = self:row_of(from)
  api.nvim_buf_clear_namespace(self.buffer, highlight.markdown, row, self.height)
  self:unlocked(function()
    api.nvim_buf_set_lines(self.buffer, row, self.height, false, {})
  end)
  for place = #self.blocks, from, -1 do
    self.places[self.blocks[place].item.itemId] = nil
    self.blocks[place] = nil
  end
  self.height = row
end

---@private
---@param item kode.Item
---@return boolean
function Transcript:is_expanded(item)
  local expanded = self.expanded[item.itemId]
  if expanded == nil then
    return render.opens_itself(item)
  end
  return expanded
end

--- Asks for what a finished call has put out: items only say how it went.
---@private
---@param item kode.Item
function Transcript:want_output(item)
  local call = item.body --[[@as kode.ToolCall]]
  if render.has_diff(call) or self.outputs[item.itemId] then
    return
  end
  local params = { sessionId = self.session.id, callId = call.callId, limit = MAX_OUTPUT }
  self.surface.connection:request('agent/output/read', params, function(_, page)
    -- Where nothing was kept of it, the card says what the item says.
    if page and page.text ~= '' and self:is_valid() then
      self.outputs[item.itemId] = page.text
      self.dirty[item.itemId] = true
      self:schedule()
    end
  end)
end

--- Opens or closes the card at a row.
---@param row integer
function Transcript:toggle(row)
  local block, place, first = self:block_at(row)
  if not block or not render.is_card(block.item) then
    return
  end
  local is_open = self:is_expanded(block.item)
  self.expanded[block.item.itemId] = not is_open
  local body = block.item.body
  if is_open then
    self.outputs[block.item.itemId] = nil
  elseif body.type == 'toolCall' and body.endedAt then
    self:want_output(block.item)
  end
  self:unlocked(function()
    self:redraw_block(place --[[@as integer]])
  end)
  -- The cursor of whoever closes a card from inside it goes to its line.
  local window = api.nvim_get_current_win()
  if api.nvim_win_get_buf(window) == self.buffer then
    api.nvim_win_set_cursor(window, { first + 2, 0 })
  end
end

--- The row of the next message in a direction; nil when there is none.
---@param row integer
---@param direction 1|-1
---@return integer?
function Transcript:heading(row, direction)
  local at = #self.head
  local found
  for _, block in ipairs(self.blocks) do
    local heading = at + 1
    if block.heading then
      if direction == 1 and heading > row then
        return heading
      elseif direction == -1 and heading < row then
        found = heading
      end
    end
    at = at + #block.lines
  end
  if direction == 1 then
    return self:waiting_row(row)
  end
  return found
end

--- The row of the next thing below a row that waits for the user.
---@param row? integer
---@return integer?
function Transcript:waiting_row(row)
  local first = self.height
  for _, footer in ipairs(self.footers) do
    if first + 1 > (row or -1) and #footer.choices > 0 then
      return first + 1
    end
    first = first + #footer.lines
  end
end

--- Lets the Markdown of a finished message be highlighted, after everything else that is to be done.
---@private
---@param block kode.DrawnBlock
function Transcript:want_highlight(block)
  local body = block.item.body
  if body.type == 'agentMessage' and body.complete then
    table.insert(self.to_highlight, block)
    if #self.to_highlight == 1 then
      vim.defer_fn(function()
        self:highlight_next()
      end, HIGHLIGHT_PAUSE)
    end
  end
end

--- Highlights one message, and lets the next one wait, so that keys are never held up by many.
---@private
function Transcript:highlight_next()
  local block = table.remove(self.to_highlight, 1)
  if not block or not self:is_valid() then
    return
  end
  local place = self.places[block.item.itemId]
  -- A block that was drawn anew meanwhile is another one, and waits itself.
  if place and self.blocks[place] == block then
    local row = self:row_of(place) + TEXT_ROW
    for _, mark in ipairs(require('kode.markdown').marks(block.item.body.text or '')) do
      local ends = mark.options.end_row
      local options = vim.tbl_extend('force', mark.options, { end_row = ends and row + ends })
      api.nvim_buf_set_extmark(self.buffer, highlight.markdown, row + mark.row, mark.column, options)
    end
  end
  if #self.to_highlight > 0 then
    vim.defer_fn(function()
      self:highlight_next()
    end, HIGHLIGHT_PAUSE)
  end
end

return Transcript
