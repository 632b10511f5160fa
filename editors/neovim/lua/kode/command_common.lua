--- Functions that the files with the sub-commands of `:Kode` share.
---
--- Rule: no sub-command is in here.

local M = {}

--- Notifies the user of something that is no fault.
---@param message string
function M.say(message)
  require('kode.notify').show('kode: ' .. message)
end

--- A completion that always offers the same.
---@param list string[]
---@return fun(): string[]
function M.fixed(list)
  return function()
    return list
  end
end

return M
