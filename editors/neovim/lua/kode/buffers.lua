--- Names and file types of the plugin's own buffers.
---
--- Rule: a buffer is named after its conversation, because statuslines and tab lines show that name, and a failing
--- autocommand of another plugin ends nothing here.

local api = vim.api

local M = {}

-- Plugins that draw Markdown look for the parser of a file type.
vim.treesitter.language.register('markdown', 'kode')

--- Gives a buffer its file type. Autocommands of other plugins may fail on it.
---@param bufnr integer
---@param filetype string
function M.adopt(bufnr, filetype)
  local ok, problem = pcall(function()
    vim.bo[bufnr].filetype = filetype
  end)
  if not ok then
    vim.schedule(function()
      vim.notify(('kode: an autocommand for the file type %s failed: %s'):format(filetype, problem), vim.log.levels.WARN)
    end)
  end
end

--- Names a buffer after a conversation. The name is unique by the end of the session's id.
---@param bufnr integer
---@param session kode.Session
---@param kind? string What it is beside the transcript.
function M.name(bufnr, session, kind)
  local title = session.title ~= '' and session.title or 'New conversation'
  -- A slash would make a folder of the words before it.
  title = require('kode.render').line(title):gsub('/', '∕')
  local name = ('kode://%s/%s%s'):format(session.id:sub(-8), kind and kind .. ': ' or '', title)
  if api.nvim_buf_get_name(bufnr) == name then
    return
  end
  local old = api.nvim_buf_get_name(bufnr)
  if not pcall(api.nvim_buf_set_name, bufnr, name) then
    return
  end
  -- Renaming leaves an unlisted buffer with the old name.
  for _, other in ipairs(api.nvim_list_bufs()) do
    if other ~= bufnr and old ~= '' and api.nvim_buf_get_name(other) == old then
      pcall(api.nvim_buf_delete, other, { force = true })
    end
  end
end

--- Sets the variables that statusline plugins can show: `b:kode_title`, `b:kode_state`.
---@param bufnr integer
---@param surface kode.Surface
function M.describe(bufnr, surface)
  local session = surface.session
  local title = session.title ~= '' and session.title or 'New conversation'
  local state = require('kode.status').word(surface)
  if vim.b[bufnr].kode_title ~= title then
    vim.b[bufnr].kode_title = title
  end
  if vim.b[bufnr].kode_state ~= state then
    vim.b[bufnr].kode_state = state
  end
end

return M
