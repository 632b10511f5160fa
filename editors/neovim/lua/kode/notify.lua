--- Notifications in one line.
---
--- Rule: Neovim's own messages wait for Enter when they are longer than the screen is wide, so what would not fit is cut there
--- and whole in `:Kode messages`. Plugins that show notifications get the whole text.

local M = {}

--- Messages that are kept.
local KEPT = 50

---@type string[]
local kept = {}

--- Whether notifications go through Neovim's command line.
---@return boolean
local function is_built_in()
  local source = debug.getinfo(vim.notify, 'S').source
  -- Neovim's own modules are compiled in: without a source, or with one in its runtime.
  return source == '?' or source:find('vim/_', 1, true) ~= nil
end

--- Notifies the user.
---@param message string
---@param level? integer
function M.show(message, level)
  message = message:gsub('%s*\n%s*', ' ')
  kept[#kept + 1] = message
  if #kept > KEPT then
    table.remove(kept, 1)
  end
  local shown = message
  if is_built_in() then
    shown = require('kode.render').shorten(message, math.max(vim.v.echospace - 1, 20))
  end
  vim.notify(shown, level or vim.log.levels.INFO)
end

--- The newest messages, whole, oldest first.
---@return string[]
function M.kept()
  return kept
end

return M
