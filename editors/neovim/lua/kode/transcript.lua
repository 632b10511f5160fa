--- The buffer that shows a session.
---
--- Rule: changes are collected and drawn at most once in an interval, and only the lines that differ are touched. Only windows
--- whose cursor is on the last line are scrolled, and a prompt never slides under a cursor that follows.

local api = vim.api
local config = require('kode.config')
local highlight = require('kode.highlight')
local pending = require('kode.pending')
local render = require('kode.render')

--- Milliseconds between the highlighting of two messages.
local HIGHLIGHT_PAUSE = 10
--- Bytes of an output that an open card reads, at most.
local MAX_OUTPUT = 65536

---@class kode.DrawnBlock: kode.Block
---@field item kode.Item

---@class kode.Transcript
---@field buffer integer
---@field session kode.Session
---@field private surface kode.Surface
---@field private head kode.StyledLine[]
---@field private blocks kode.DrawnBlock[]
---@field private places table<kode.ItemId, integer>
---@field private height integer Lines of head and blocks.
---@field private footers kode.Footer[]
---@field private footer_height integer
---@field private footer_since integer When the footers last moved, in milliseconds.
---@field private room kode.Room
---@field private expanded table<kode.ItemId, boolean>
---@field private outputs table<kode.ItemId, string> Outputs of finished calls with an open card.
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

---@param lines kode.StyledLine[]
---@return string[]
local function plain(lines)
  return vim.tbl_map(function(line)
    return line.text
  end, lines)
end

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
    room = pending.ROOM,
    last_draw = 0,
    to_highlight = {},
  }, Transcript)
  by_buffer[self.buffer] = self
  local options = vim.bo[self.buffer]
  options.bufhidden = 'hide'
  options.modifiable = false
  options.swapfile = false
  options.undolevels = -1
  require('kode.buffers').adopt(self.buffer, 'kode')
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
  -- A buffer that was empty in between keeps an empty line at its end.
  local total = (self.height or 0) + self.footer_height
  if total > 0 and api.nvim_buf_line_count(self.buffer) > total then
    api.nvim_buf_set_lines(self.buffer, total, -1, false, {})
  end
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

--- Replaces the `old` lines that begin at a row by a block; equal lines are not touched.
---@private
---@param row integer
---@param old string[]
---@param block kode.Block
function Transcript:replace(row, old, block)
  local new = block.lines
  -- A mark whose line is removed would move to the next block.
  api.nvim_buf_clear_namespace(self.buffer, highlight.transcript, row, row + #old)
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
---@return kode.StyledLine[]
function Transcript:head_lines()
  local session, lines = self.session, {} ---@type kode.Session, kode.StyledLine[]
  if session:is_named() then
    lines[1] = { text = '# ' .. render.line(session.title), group = 'KodeTitle' }
  end
  if session.more_items then
    lines[#lines + 1] = { text = 'There is more above: `go` shows it.', group = 'KodeMeta' }
  end
  return #session.items > 0 and lines or vim.list_extend(lines, require('kode.welcome').lines(self.surface))
end

--- The nearest item above a place that is no notice.
---@private
---@param place integer
---@return kode.Item?
function Transcript:above(place)
  for number = place - 1, 1, -1 do
    local item = self.blocks[number].item
    if item.body.type ~= 'notice' then
      return item
    end
  end
end

---@private
---@param item kode.Item
---@param place integer
---@return kode.DrawnBlock
function Transcript:render(item, place)
  local settings = config.get().transcript
  local body, above = item.body, self:above(place)
  local direct = self.blocks[place - 1]
  local block = render.item(item, {
    expanded = self:is_expanded(item),
    linear = settings.linear,
    ascii = settings.ascii,
    card_lines = settings.card_lines,
    headed = above == nil or above.body.type == 'userMessage' or above.body.type == 'command',
    joined = direct ~= nil and render.is_card(direct.item) and render.is_card(item),
    output = self.outputs[item.itemId] or self.session.progress[item.itemId],
    subagent = body.type == 'toolCall' and self.session.subagents[body.callId] or nil,
  }) --[[@as kode.DrawnBlock]]
  block.item = item
  return block
end

--- The room in the smallest window that shows the transcript.
---@private
---@return kode.Room
function Transcript:measure()
  local room
  for _, window in ipairs(vim.fn.win_findbuf(self.buffer)) do
    local info = vim.fn.getwininfo(window)[1]
    local width, height = info.width - info.textoff, info.height
    room = {
      width = math.max(math.min(width, room and room.width or width), 1),
      height = math.max(math.min(height, room and room.height or height), 1),
    }
  end
  return room or pending.ROOM
end

--- Fits prompts and tables to the windows, after one has another size.
function Transcript:resized()
  local room = self:measure()
  if not self:is_valid() or vim.deep_equal(room, self.room) then
    return
  end
  local is_wider = room.width ~= self.room.width
  self.room = room
  self.footer_dirty = true
  self:draw()
  if is_wider then
    api.nvim_buf_clear_namespace(self.buffer, highlight.markdown, 0, -1)
    self:highlight_newest()
  end
end

--- Draws everything again.
function Transcript:draw_all()
  if not self:is_valid() then
    return
  end
  self.dirty, self.grown, self.added, self.footer_dirty = {}, {}, {}, false
  self.head = self:head_lines()
  self.blocks, self.places = {}, {}
  local lines = plain(self.head)
  for place, item in ipairs(self.session.items) do
    local block = self:render(item, place)
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
    self:mark(0, self:head_block())
    local row = #self.head
    for _, block in ipairs(self.blocks) do
      self:mark(row, block)
      row = row + #block.lines
    end
    self.footers, self.footer_height = {}, 0
    self:draw_footers()
  end)
  self:highlight_newest()
  self:follow(following)
end

--- Queues the newest messages to be highlighted.
---@private
function Transcript:highlight_newest()
  self.to_highlight = {}
  local lines_left = config.get().transcript.highlight_lines
  for place = #self.blocks, 1, -1 do
    lines_left = lines_left - #self.blocks[place].lines
    if lines_left < 0 then
      break
    end
    self:want_highlight(self.blocks[place])
  end
end

---@private
---@return kode.Block
function Transcript:head_block()
  local block = { lines = plain(self.head), marks = {} } ---@type kode.Block
  for number, line in ipairs(self.head) do
    if line.group then
      local options = { end_col = #line.text, hl_group = line.group }
      block.marks[#block.marks + 1] = { row = number - 1, column = 0, options = options }
    end
  end
  return block
end

---@private
function Transcript:draw_head()
  local old = self.head
  self.head = self:head_lines()
  if not vim.deep_equal(old, self.head) then
    self:replace(0, plain(old), self:head_block())
    self.height = self.height + #self.head - #old
  end
end

--- The first row of a block, counted from the nearer end.
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

--- The prompt at a row.
---@param row integer
---@return kode.Footer?
function Transcript:footer_at(row)
  local first = self.height
  for _, footer in ipairs(self.footers) do
    -- The empty line above a prompt is not part of it.
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

--- Whether the prompts have been where they are for long enough to be answered by a key.
---@return boolean
function Transcript:is_settled()
  return vim.uv.now() - self.footer_since >= config.get().settle
end

--- Gives an answer, unless the prompt has only just appeared under the user's fingers.
---@param choice kode.Choice
function Transcript:choose(choice)
  if not self:is_settled() then
    return vim.notify('kode: this prompt just appeared; press the key again', vim.log.levels.WARN)
  end
  choice.act(self.surface)
end

--- The answer on a row of a prompt.
---@param row integer
---@return kode.Choice?
function Transcript:choice_at(row)
  local first = self.height
  for _, footer in ipairs(self.footers) do
    if row < first + #footer.lines then
      return footer.rows[row - first]
    end
    first = first + #footer.lines
  end
end

--- Goes back to before the prompt at a row, with its words in the prompt buffer.
---@param row integer
function Transcript:edit_again(row)
  local block = self:block_at(row)
  if not block or block.item.body.type ~= 'userMessage' then
    return vim.notify('kode: the cursor is on no prompt of yours', vim.log.levels.INFO)
  end
  self.surface:ask('agent/checkpoint/list', {}, function(result)
    for _, checkpoint in ipairs(result.checkpoints) do
      if checkpoint.itemId == block.item.itemId then
        return require('kode.pick_sessions').restore(self.surface, checkpoint)
      end
    end
    vim.notify('kode: this prompt has no checkpoint', vim.log.levels.INFO)
  end)
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
  self.footers = pending.footers(self.session, self.room, config.get().transcript.linear)
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
  local block = self:render(self.session:item(old.item.itemId) or old.item, place)
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
  -- It may have changed since it was added.
  local block = self:render(self.session:item(item.itemId) or item, #self.blocks + 1)
  self:replace(self.height, {}, block)
  self.blocks[#self.blocks + 1] = block
  self.places[item.itemId] = #self.blocks
  self:want_highlight(block)
  self.height = self.height + #block.lines
end

--- Appends text to a block.
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

--- The windows that follow: their cursor is on the last line.
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

--- Scrolls those windows to the last line of the transcript, with the prompts below it visible.
---@private
---@param windows integer[]
function Transcript:follow(windows)
  local total = self.height + self.footer_height
  for _, window in ipairs(windows) do
    if api.nvim_win_is_valid(window) then
      local last = math.max(self.height, 1)
      -- A cursor that is on the last line already keeps its column: the user may be moving along it.
      if api.nvim_win_get_cursor(window)[1] ~= last then
        api.nvim_win_set_cursor(window, { last, 0 })
      end
      local info = vim.fn.getwininfo(window)[1]
      local height = info.height
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

--- Scrolls the windows with the transcript to its end at the next update: the user has sent a prompt.
function Transcript:scroll_to_end()
  local current = api.nvim_get_current_win()
  for _, window in ipairs(vim.fn.win_findbuf(self.buffer)) do
    if window ~= current then
      api.nvim_win_set_cursor(window, { math.max(self.height, 1), 0 })
    end
  end
end

--- Draws the changes since the last update.
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

--- Draws soon: at once when the last update is an interval ago.
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

--- Applies a change of the session.
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

--- Removes the blocks from a place on.
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

--- Requests the output of a finished call; an item has only its short result.
---@private
---@param item kode.Item
function Transcript:want_output(item)
  local call = item.body --[[@as kode.ToolCall]]
  if render.has_diff(call) or self.outputs[item.itemId] then
    return
  end
  local params = { sessionId = self.session.id, callId = call.callId, limit = MAX_OUTPUT }
  self.surface.connection:request('agent/output/read', params, function(_, page)
    -- Without a stored output, the card shows the short result.
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
  -- A card that is closed from inside takes the cursor to its line.
  local window, drawn = api.nvim_get_current_win(), self.blocks[place --[[@as integer]]]
  if api.nvim_win_get_buf(window) == self.buffer and drawn and first then
    local card = first + (drawn.card_row or 0) + 1 --[[@as integer]]
    api.nvim_win_set_cursor(window, { card, 0 })
  end
end

--- The row of the next message in a direction; nil if absent.
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

--- The row of the next prompt below a row.
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

--- Queues a finished message to be highlighted when nothing else is to be done.
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

--- Highlights one message; the next one waits, so that many never hold up a key.
---@private
function Transcript:highlight_next()
  local block = table.remove(self.to_highlight, 1)
  if not block or not self:is_valid() then
    return
  end
  local place = self.places[block.item.itemId]
  -- A block that was redrawn meanwhile is queued itself.
  if place and self.blocks[place] == block then
    local row = self:row_of(place) + block.text_row
    local following = self:following()
    local settings = { width = self.room.width, conceal = config.get().transcript.conceal }
    for _, mark in ipairs(require('kode.markdown').marks(block.item.body.text or '', settings)) do
      local ends = mark.options.end_row
      local options = vim.tbl_extend('force', mark.options, { end_row = ends and row + ends })
      api.nvim_buf_set_extmark(self.buffer, highlight.markdown, row + mark.row, mark.column, options)
    end
    -- Aligned columns may make lines wrap.
    self:follow(following)
  end
  if #self.to_highlight > 0 then
    vim.defer_fn(function()
      self:highlight_next()
    end, HIGHLIGHT_PAUSE)
  end
end

return Transcript
