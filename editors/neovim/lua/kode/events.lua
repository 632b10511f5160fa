--- User autocommands for everything that happens.
---
--- Rule: an event is told after the state has it, and a listener that fails stops nothing.

---@class kode.EventData What `event.data` is in a `User KodeEvent` autocommand, and in that of the event's own name.
---@field session_id kode.SessionId
---@field bookmark kode.Bookmark
---@field channel kode.Channel
---@field event kode.Event

local M = {}

--- The name of the autocommand of a type of event: `tool:start` is told as `KodeToolStart`.
---@param type string
---@return string
function M.name(type)
  local name = ('_' .. type):gsub('[_:](%l)', string.upper)
  return 'Kode' .. name
end

---@param pattern string
---@param data table
local function tell(pattern, data)
  local ok, problem = pcall(vim.api.nvim_exec_autocmds, 'User', { pattern = pattern, data = data, modeline = false })
  if not ok then
    vim.notify(('kode: an autocommand for %s failed: %s'):format(pattern, problem), vim.log.levels.ERROR)
  end
end

--- Tells of something in the client itself.
---@param name string
---@param data table
function M.emit(name, data)
  tell('Kode' .. name, data)
end

--- Tells of an event of the server.
---@param params kode.AgentEventParams
function M.emit_event(params)
  ---@type kode.EventData
  local data = {
    session_id = params.sessionId,
    bookmark = params.bookmark,
    channel = params.channel,
    event = params.event,
  }
  tell(M.name(params.event.type), data)
  tell('KodeEvent', data)
end

return M
