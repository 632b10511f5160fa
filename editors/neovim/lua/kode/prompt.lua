--- The buffer in which a prompt is written.
---
--- Rule: what the user has typed is only ever replaced by a draft from elsewhere, and that only while it is what this
--- buffer has told last. The draft is kept on the server when typing rests.

local api = vim.api

--- Milliseconds of rest after which a draft is kept.
local DRAFT_DELAY = 500
--- Bytes of what goes with a prompt that are kept with its draft: more would be sent again with each rest of typing.
local MAX_DRAFT_PARTS = 256 * 1024

---@class kode.Prompt
---@field buffer integer
---@field private surface kode.Surface
---@field private told string The words of the draft as the server has them.
---@field private told_parts kode.InputPart[] What goes with them there.
---@field private sends integer How often a prompt was handed in.
---@field private recalled? integer
---@field private timer? uv.uv_timer_t
local Prompt = {}
Prompt.__index = Prompt

---@type table<integer, kode.Prompt>
local by_buffer = {}

--- The prompt that a buffer holds.
---@param bufnr integer
---@return kode.Prompt?
function Prompt.of(bufnr)
  return by_buffer[bufnr]
end

--- The surface that a prompt's buffer belongs to.
---@param bufnr integer
---@return kode.Surface?
function Prompt.surface_of(bufnr)
  return by_buffer[bufnr] and by_buffer[bufnr].surface
end

--- Keeps all drafts at once.
function Prompt.flush_all()
  for _, prompt in pairs(by_buffer) do
    prompt:flush()
  end
end

---@param surface kode.Surface
---@return kode.Prompt
function Prompt.new(surface)
  local self = setmetatable({
    surface = surface,
    buffer = api.nvim_create_buf(false, true),
    told = '',
    told_parts = {},
    sends = 0,
  }, Prompt)
  by_buffer[self.buffer] = self
  api.nvim_buf_set_name(self.buffer, 'kode://prompt/' .. surface.session.id)
  local options = vim.bo[self.buffer]
  options.bufhidden = 'hide'
  options.swapfile = false
  options.filetype = 'kodeprompt'
  -- A menu of one entry is a menu too, and nothing is put in before it is chosen.
  options.completeopt = 'menuone,noselect,noinsert'
  options.completefunc = "v:lua.require'kode.complete'.func"
  options.omnifunc = "v:lua.require'kode.complete'.func"
  require('kode.maps').prompt(self)
  require('kode.prompt_server').attach(self.buffer)
  local draft = surface.session.draft
  self:show(draft and draft.text or '')
  self:adopt(draft and draft.parts or {})
  api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'TextChangedP' }, {
    buffer = self.buffer,
    desc = 'kode: keep the draft, offer names',
    callback = function(event)
      self:changed()
      if event.event ~= 'TextChanged' then
        require('kode.complete').typed(self.buffer)
      end
    end,
  })
  api.nvim_create_autocmd('BufWipeout', {
    buffer = self.buffer,
    callback = function()
      self:flush()
      by_buffer[self.buffer] = nil
      surface.prompt = nil
    end,
  })
  return self
end

---@return string
function Prompt:text()
  return table.concat(api.nvim_buf_get_lines(self.buffer, 0, -1, false), '\n')
end

--- Shows a text that the server has; it is no step to undo.
---@private
---@param text string
function Prompt:show(text)
  self.told = text
  local levels = vim.bo[self.buffer].undolevels
  vim.bo[self.buffer].undolevels = -1
  api.nvim_buf_set_lines(self.buffer, 0, -1, false, vim.split(text, '\n', { plain = true }))
  vim.bo[self.buffer].undolevels = levels
  vim.bo[self.buffer].modified = false
end

--- What goes with the draft; pictures of some size are kept by this Neovim alone.
---@private
---@return kode.InputPart[]
function Prompt:draft_parts()
  local left = MAX_DRAFT_PARTS
  return vim.tbl_filter(function(part)
    local size = #(part.data or part.text or '')
    left = left - size
    return left >= 0
  end, self.surface.parts)
end

--- Takes over what goes with a draft from elsewhere, beside what only this Neovim has.
---@private
---@param parts kode.InputPart[]
function Prompt:adopt(parts)
  if vim.deep_equal(parts, self.told_parts) then
    return
  end
  local known = self.told_parts
  local own = vim.tbl_filter(function(part)
    return not vim.tbl_contains(known, function(other)
      return vim.deep_equal(part, other)
    end, { predicate = true })
  end, self.surface.parts)
  self.told_parts = parts
  self.surface.parts = vim.list_extend(vim.list_slice(parts), own)
end

--- Puts text into the prompt as the user would, so that `u` takes it back.
---@param text string
function Prompt:insert(text)
  local lines = vim.split(text, '\n', { plain = true })
  if self:text() == '' then
    api.nvim_buf_set_lines(self.buffer, 0, -1, false, lines)
  else
    api.nvim_buf_set_lines(self.buffer, -1, -1, false, lines)
  end
  self:changed()
end

---@return kode.Surface
function Prompt:owner()
  return self.surface
end

--- Shows a prompt that was sent before, in the place of what is written.
---@param direction 1|-1
function Prompt:recall(direction)
  local sent = {}
  for _, item in ipairs(self.surface.session.items) do
    if item.body.type == 'userMessage' then
      sent[#sent + 1] = item.body.text
    end
  end
  local at = (self.recalled or #sent + 1) + direction
  if at >= 1 and at <= #sent then
    self.recalled = at
    api.nvim_buf_set_lines(self.buffer, 0, -1, false, vim.split(sent[at], '\n', { plain = true }))
  end
end

--- Empties the prompt after it was handed in; `u` brings the words back.
function Prompt:clear()
  self:stop()
  self.told, self.told_parts, self.recalled = '', {}, nil
  self.sends = self.sends + 1
  api.nvim_buf_set_lines(self.buffer, 0, -1, false, {})
end

---@private
function Prompt:stop()
  if self.timer then
    self.timer:stop()
    self.timer:close()
    self.timer = nil
  end
end

--- Something was typed or attached: the draft is kept soon.
function Prompt:changed()
  self:stop()
  self.timer = assert(vim.uv.new_timer())
  self.timer:start(
    DRAFT_DELAY,
    0,
    vim.schedule_wrap(function()
      if self.timer then
        self:flush()
      end
    end)
  )
end

--- Keeps the draft now, if it is another one.
function Prompt:flush()
  self:stop()
  if not api.nvim_buf_is_loaded(self.buffer) then
    return
  end
  local text, parts = self:text(), self:draft_parts()
  local connection, session, sends = self.surface.connection, self.surface.session, self.sends
  local is_news = text ~= self.told or not vim.deep_equal(parts, self.told_parts)
  if is_news and connection.status == 'ready' and not session.following then
    local params = { sessionId = session.id, text = text, parts = #parts > 0 and parts or nil }
    connection:request('agent/draft/set', params, function(err)
      -- Until it is answered the words are here alone, and a server that ends meanwhile has nothing to put in their
      -- place. An error with each rest of typing would be in the way; typing on keeps them.
      if not err and self.sends == sends then
        self.told, self.told_parts = text, parts
      end
    end)
  end
end

--- The draft was changed elsewhere, or the session was loaded again.
function Prompt:on_draft()
  local draft = self.surface.session.draft
  local text = draft and draft.text or ''
  self:adopt(draft and draft.parts or {})
  if self:text() == self.told then
    if text ~= self.told then
      self:show(text)
    end
  else
    self.told = text
    self:changed()
  end
end

return Prompt
