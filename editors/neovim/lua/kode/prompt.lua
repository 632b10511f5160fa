--- The buffer in which a prompt is written.
---
--- Rule: text of the user is replaced by a draft from elsewhere only while it is the draft that this buffer has sent last. The
--- draft is sent to the server when typing rests.

local api = vim.api

--- Milliseconds of rest after which a draft is kept.
local DRAFT_DELAY = 500
--- Bytes of what goes with a prompt that are kept with its draft: more would be sent again with each rest of typing.
local MAX_DRAFT_PARTS = 256 * 1024

---@class kode.Prompt
---@field buffer integer
---@field private surface kode.Surface
---@field private known string The text of the draft as the server has it.
---@field private known_parts kode.InputPart[] The attachments of that draft.
---@field private sending? kode.InputPart[] The attachments of a draft that the server has not confirmed yet.
---@field private sends integer The number of prompts that were sent.
---@field private recalled? integer The place of the sent prompt that is shown.
---@field private unsent? string The text that a sent prompt has taken the place of.
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
    known = '',
    known_parts = {},
    sends = 0,
  }, Prompt)
  by_buffer[self.buffer] = self
  local options = vim.bo[self.buffer]
  options.bufhidden = 'hide'
  options.swapfile = false
  -- A menu of one entry is a menu too, and nothing is put in before it is chosen.
  options.completeopt = 'menuone,noselect,noinsert'
  options.completefunc = "v:lua.require'kode.complete'.func"
  options.omnifunc = "v:lua.require'kode.complete'.func"
  require('kode.buffers').adopt(self.buffer, 'kodeprompt')
  require('kode.maps').prompt(self)
  -- Maps for language servers would replace these in the prompt, which has a server of its own.
  api.nvim_create_autocmd('LspAttach', {
    buffer = self.buffer,
    desc = 'kode: keep the keys of the prompt',
    callback = vim.schedule_wrap(function()
      if api.nvim_buf_is_valid(self.buffer) then
        require('kode.maps').prompt(self)
      end
    end),
  })
  require('kode.prompt_server').attach(self.buffer)
  local draft = surface.session.draft
  self:show(draft and draft.text or '')
  self:adopt(draft and draft.parts or {})
  api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'TextChangedP' }, {
    buffer = self.buffer,
    desc = 'kode: keep the draft, offer names',
    callback = function(event)
      self:hint()
      self:changed()
      if event.event ~= 'TextChanged' then
        require('kode.complete').typed(self.buffer)
      end
    end,
  })
  require('kode.complete').register()
  api.nvim_create_autocmd('InsertEnter', {
    buffer = self.buffer,
    desc = 'kode: give completion plugins the one source of a prompt',
    -- A plugin may be loaded by the same event.
    callback = vim.schedule_wrap(require('kode.complete').register),
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

--- Shows in an empty prompt how to send.
---@private
function Prompt:hint()
  local namespace = require('kode.highlight').prompt
  api.nvim_buf_clear_namespace(self.buffer, namespace, 0, -1)
  local lines = api.nvim_buf_get_lines(self.buffer, 0, 2, false)
  if #lines > 1 or lines[1] ~= '' then
    return
  end
  local maps = require('kode.maps')
  local send, insert = maps.key('prompt', 'send'), maps.key('prompt', 'send_insert')
  local how = insert and ('%s sends'):format(insert) or send and ('<Esc>%s sends'):format(send) or ''
  local text = ('Ask Kode. %s, @ names files, / commands'):format(how)
  api.nvim_buf_set_extmark(self.buffer, namespace, 0, 0, {
    virt_text = { { text, 'KodeMeta' } },
    virt_text_pos = 'overlay',
  })
end

---@return string
function Prompt:text()
  return table.concat(api.nvim_buf_get_lines(self.buffer, 0, -1, false), '\n')
end

--- Shows a text that the server has; it is no step to undo.
---@private
---@param text string
function Prompt:show(text)
  self.known = text
  local levels = vim.bo[self.buffer].undolevels
  vim.bo[self.buffer].undolevels = -1
  api.nvim_buf_set_lines(self.buffer, 0, -1, false, vim.split(text, '\n', { plain = true }))
  vim.bo[self.buffer].undolevels = levels
  vim.bo[self.buffer].modified = false
  self:hint()
end

--- The attachments that are kept with the draft; large images stay in this Neovim.
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

--- Whether a list has an equal part.
---@param parts kode.InputPart[]
---@param part kode.InputPart
---@return boolean
local function has(parts, part)
  return vim.tbl_contains(parts, function(other)
    return vim.deep_equal(part, other)
  end, { predicate = true })
end

--- Takes over the attachments of a draft from elsewhere, beside those that only this Neovim has.
---@private
---@param parts kode.InputPart[]
function Prompt:adopt(parts)
  if vim.deep_equal(parts, self.known_parts) then
    return
  end
  -- The event about a draft of this buffer may come before the answer to the request that sent it.
  local known = vim.list_extend(vim.list_slice(self.known_parts), self.sending or {})
  local own = vim.tbl_filter(function(part)
    return not has(known, part) and not has(parts, part)
  end, self.surface.parts)
  self.known_parts = parts
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

--- Shows a prompt that was sent before; going past the newest brings back the text that was not sent.
---@param direction 1|-1
function Prompt:recall(direction)
  local sent = {} ---@type string[]
  for _, item in ipairs(self.surface.session.items) do
    if item.body.type == 'userMessage' then
      sent[#sent + 1] = item.body.text
    end
  end
  local from = self.recalled or #sent + 1
  local at = math.max(math.min(from + direction, #sent + 1), 1)
  if at == from then
    return
  elseif not self.recalled then
    self.unsent = self:text()
  end
  self.recalled = at <= #sent and at or nil
  local text = sent[at] or self.unsent or ''
  api.nvim_buf_set_lines(self.buffer, 0, -1, false, vim.split(text, '\n', { plain = true }))
end

--- Empties the prompt after it was sent; `u` brings the text back.
function Prompt:clear()
  self:stop()
  self.known, self.known_parts, self.recalled, self.unsent = '', {}, nil, nil
  self.sends = self.sends + 1
  api.nvim_buf_set_lines(self.buffer, 0, -1, false, {})
  self:hint()
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
  local is_news = text ~= self.known or not vim.deep_equal(parts, self.known_parts)
  if is_news and connection.status == 'ready' and not session.following then
    local params = { sessionId = session.id, text = text, parts = #parts > 0 and parts or nil }
    self.sending = parts
    connection:request('agent/draft/set', params, function(err)
      -- Until it is answered the text is here alone, and a server that ends meanwhile has nothing to put in its place. An
      -- error with each rest of typing would be in the way; typing on sends it again.
      if self.sending == parts then
        self.sending = nil
      end
      if not err and self.sends == sends then
        self.known, self.known_parts = text, parts
      end
    end)
  end
end

--- The draft was changed elsewhere, or the session was loaded again.
function Prompt:on_draft()
  local draft = self.surface.session.draft
  local text = draft and draft.text or ''
  self:adopt(draft and draft.parts or {})
  if self:text() == self.known then
    if text ~= self.known then
      self:show(text)
    end
  else
    self.known = text
    self:changed()
  end
end

return Prompt
