--- The Lua interface of the plugin.
---
--- Rule: this interface is stable; everything else in `kode.*` may change. Loading this module starts nothing.

local M = {}

--- Sets the plugin up. It is optional: `vim.g.kode` does the same, and the defaults work.
---@param settings? table See |kode-settings|.
function M.setup(settings)
  require('kode.config').set(settings or {})
end

--- Opens the conversation of this project.
---@param layout? "split"|"float"|"tab"|"current"
function M.open(layout)
  require('kode.command').commands.open.run({ words = { layout }, text = layout or '', bang = false })
end

--- Opens or closes the conversation.
function M.toggle()
  require('kode.command').commands.toggle.run({ words = {}, text = '', bang = false })
end

--- Sends a prompt to the current session, or to a new one.
---@param text string
---@param options? kode.SendOptions
function M.send(text, options)
  require('kode.surface').with(function(surface)
    surface:send(text, options)
  end)
end

--- Stops the running turn.
function M.stop()
  local surface = require('kode.surface').current()
  if surface then
    surface:stop()
  end
end

--- The current session's state, read only.
---@return kode.Session?
function M.session()
  local surface = require('kode.surface').current() or require('kode.surface').latest()
  return surface and surface.session
end

--- Sends any request of the protocol for this project. |kode-protocol|
---@param method string
---@param params table
---@param callback fun(problem?: lsp.ResponseError, result?: any)
function M.request(method, params, callback)
  local connection = require('kode.connection')
  connection.get(connection.root(vim.api.nvim_get_current_buf())):request(method, params, callback)
end

--- Registers tools of a plugin for the model, for all sessions; replaces those that the provider had. |kode.tools()|
---@param provider string
---@param tools kode.Tool[]
function M.tools(provider, tools)
  require('kode.tools').register(provider, tools)
end

--- A short text for the statusline; empty before the first use of the plugin.
---@return string
function M.statusline()
  return package.loaded['kode.surface'] and require('kode.status').statusline() or ''
end

--- A line for the winbar of any window, with highlights: state, mode, model, context window, cost. Empty before the first
--- use of the plugin.
---@return string
function M.winbar()
  return package.loaded['kode.surface'] and require('kode.status').winbar() or ''
end

--- The number of prompts and questions that wait for the user in all sessions.
---@return integer
function M.waiting()
  local count = 0
  if package.loaded['kode.surface'] then
    for _, surface in pairs(require('kode.surface').all()) do
      count = count + surface.session:waiting()
    end
  end
  return count
end

--- Goes to the next or the previous change.
---@param direction 1|-1
function M.jump(direction)
  require('kode.review').jump(direction)
end

--- Keeps or undoes the changes in some lines of the current buffer: the cursor's line when none are named.
---@param wish "keep"|"undo"
---@param first? integer From 1.
---@param last? integer
function M.resolve(wish, first, last)
  first = first or vim.api.nvim_win_get_cursor(0)[1]
  require('kode.review').resolve_rows(wish, first - 1, (last or first) - 1)
end

return M
