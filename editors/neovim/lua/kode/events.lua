--- User autocommands for every event.
---
--- Rule: an event is emitted after the state has it, and a failing listener stops nothing.

---@class kode.EventData The `data` of a `User KodeEvent` autocommand, and of the one with the event's own name.
---@field session_id kode.SessionId
---@field bookmark kode.Bookmark
---@field channel kode.Channel
---@field event kode.Event

local M = {}

--- The autocommand of a type of event: `tool:start` is emitted as `KodeToolStart`.
---@param type string
---@return string
function M.name(type)
  local name = ('_' .. type):gsub('[_:](%l)', string.upper)
  return 'Kode' .. name
end

---@param pattern string
---@param data table
local function emit(pattern, data)
  local ok, problem = pcall(vim.api.nvim_exec_autocmds, 'User', { pattern = pattern, data = data, modeline = false })
  if not ok then
    vim.notify(('kode: an autocommand for %s failed: %s'):format(pattern, problem), vim.log.levels.ERROR)
  end
end

--- Emits an event of the client itself.
---@param name string
---@param data table
function M.emit(name, data)
  emit('Kode' .. name, data)
end

--- Emits an event of the server.
---@param params kode.AgentEventParams
function M.emit_event(params)
  ---@type kode.EventData
  local data = {
    session_id = params.sessionId,
    bookmark = params.bookmark,
    channel = params.channel,
    event = params.event,
  }
  emit(M.name(params.event.type), data)
  emit('KodeEvent', data)
end

return M
