--- Alerts of a user who is elsewhere: the focus that the terminal reports, and its bell.
---
--- Rule: the server decides about alerts. A terminal that reports no focus is left out: the server waits longer then.

local api = vim.api

local M = {}

---@type boolean?
local focused

--- Reports the focus to a server, once the terminal has reported it.
---@param connection kode.Connection
function M.report(connection)
  if focused ~= nil then
    connection:dispatch('agent/client/focus', { focused = focused }, function() end)
  end
end

--- Notes the focus, and reports it to all servers that run.
---@param is_focused boolean
function M.set(is_focused)
  focused = is_focused
  for _, connection in pairs(require('kode.connection').all()) do
    if connection.status == 'ready' then
      M.report(connection)
    end
  end
end

--- Rings the bell of the terminal.
function M.ring()
  -- Printed text would be drawn on the screen; the error output is the terminal.
  pcall(api.nvim_chan_send, vim.v.stderr, '\7')
end

local group = api.nvim_create_augroup('kode.alert', {})
for event, is_focused in pairs({ FocusGained = true, FocusLost = false }) do
  api.nvim_create_autocmd(event, {
    group = group,
    desc = 'kode: report whether Neovim is in front',
    callback = function()
      M.set(is_focused)
    end,
  })
end

return M
