--- The window with the text that concerns every entry of a list, for pickers without a preview of their own.
---
--- Rule: it takes no focus and stays below the windows of plugins.

local M = {}

---@param about kode.PickerPreview
---@param title string
---@param entries? integer Rows that the list takes.
---@return integer window
function M.open(about, title, entries)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.bo[bufnr].bufhidden = 'wipe'
  require('kode.picker').fill(bufnr, about)
  -- Neovim's own list takes the last rows of the screen.
  local height = math.max(vim.o.lines - (entries or math.floor(vim.o.lines / 2)) - 6, 3)
  local width = math.min(vim.o.columns - 4, 100)
  local wanted = 0
  for _, line in ipairs(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)) do
    wanted = wanted + require('kode.render').rows(line, width)
  end
  local window = vim.api.nvim_open_win(bufnr, false, {
    relative = 'editor',
    row = 0,
    col = 1,
    width = width,
    height = math.min(wanted, height),
    border = 'rounded',
    title = (' %s '):format(title),
    style = 'minimal',
    focusable = false,
    -- Below the windows of plugins.
    zindex = 40,
  })
  vim.wo[window][0].wrap = true
  vim.wo[window][0].linebreak = true
  vim.cmd.redraw()
  return window
end

return M
