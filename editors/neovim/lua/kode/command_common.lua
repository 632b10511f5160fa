--- What the files with the sub-commands of `:Kode` share.
---
--- Rule: no sub-command is in here.

local M = {}

--- Tells the user something that is no fault.
---@param message string
function M.say(message)
  vim.notify('kode: ' .. message, vim.log.levels.INFO)
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
