--- The buffer in which a prompt is written.
---
--- Rule: what the user has typed is only ever replaced by a draft from elsewhere, and that only while it is what this
--- buffer has told last. The draft is kept on the server when typing rests.

local api = vim.api

--- Milliseconds of rest after which a draft is kept.
local DRAFT_DELAY = 500

---@class kode.Prompt
---@field buffer integer
---@field private surface kode.Surface
---@field private told string The draft as the server has it.
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
  local self = setmetatable({ surface = surface, buffer = api.nvim_create_buf(false, true), told = '' }, Prompt)
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
  self:show(surface.session.draft and surface.session.draft.text or '')
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
  self.told, self.recalled = '', nil
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

---@private
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
  local text = self:text()
  local connection = self.surface.connection
  if text ~= self.told and connection.status == 'ready' and not self.surface.session.following then
    self.told = text
    connection:request('agent/draft/set', { sessionId = self.surface.session.id, text = text }, function(err)
      if err then
        -- Typing on keeps it; an error with each rest of typing would be in the way.
        self.told = ''
      end
    end)
  end
end

--- The draft was changed elsewhere, or the session was loaded again.
function Prompt:on_draft()
  local text = self.surface.session.draft and self.surface.session.draft.text or ''
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
