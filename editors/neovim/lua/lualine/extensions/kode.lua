--- The extension for lualine.nvim: `extensions = { 'kode' }` gives the windows of a conversation their own lines.
---
--- Rule: a winbar is shown only where the user's configuration has one; it then has the state of the session.

local function title()
  return vim.b.kode_title or ''
end

local function state()
  return require('kode').statusline()
end

local function winbar()
  return vim.bo.filetype == 'kode' and require('kode').winbar() or require('kode.status').prompt_winbar()
end

return {
  sections = { lualine_a = { title }, lualine_x = { state }, lualine_z = { 'location' } },
  inactive_sections = { lualine_c = { title }, lualine_x = { 'location' } },
  winbar = { lualine_c = { winbar } },
  inactive_winbar = { lualine_c = { winbar } },
  filetypes = { 'kode', 'kodeprompt' },
}
