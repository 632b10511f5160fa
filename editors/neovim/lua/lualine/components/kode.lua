--- The component for lualine.nvim: `lualine_x = { 'kode' }` shows the state of the conversation used last.
---
--- Rule: it is empty before the plugin was used, and loads nothing then.

local Component = require('kode.foreign')('lualine.component'):extend()

function Component.update_status()
  return require('kode').statusline()
end

return Component
