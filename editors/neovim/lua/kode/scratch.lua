--- Floating windows with a read-only text, and buffers whose text is stored by `:w`.
---
--- Rule: only a command or key of the user opens them, and nothing in a text is run.

local api = vim.api

local M = {}

---@param bufnr integer
---@param lines string[]
function M.fill(bufnr, lines)
  vim.bo[bufnr].modifiable = true
  api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].modified = false
end

--- Splits lines of a server or model that contain line breaks.
---@param lines string[]
---@return string[]
local function flat(lines)
  local all = {}
  for _, line in ipairs(lines) do
    vim.list_extend(all, vim.split(line, '\n', { plain = true }))
  end
  return all
end

--- Shows lines in a float that `q` closes.
---@param lines string[]
---@param options? { title?: string, filetype?: string }
---@return integer bufnr
function M.float(lines, options)
  options = options or {}
  lines = flat(lines)
  local bufnr = api.nvim_create_buf(false, true)
  vim.bo[bufnr].bufhidden = 'wipe'
  M.fill(bufnr, lines)
  local longest = 40
  for _, line in ipairs(lines) do
    longest = math.max(longest, api.nvim_strwidth(line))
  end
  local width = math.min(longest + 2, vim.o.columns - 6)
  local height = math.max(math.min(#lines, vim.o.lines - 8), 1)
  local window = api.nvim_open_win(bufnr, true, {
    relative = 'editor',
    width = width,
    height = height,
    row = math.max(math.floor((vim.o.lines - height) / 2) - 2, 0),
    col = math.floor((vim.o.columns - width) / 2),
    border = 'rounded',
    title = options.title and (' %s '):format(options.title:gsub('%c', ' ')) or nil,
    style = 'minimal',
  })
  vim.wo[window][0].wrap = true
  vim.wo[window][0].conceallevel = 0
  if options.filetype == 'diff' then
    vim.bo[bufnr].syntax = 'diff'
  elseif options.filetype == 'markdown' and vim.treesitter.language.add('markdown') then
    vim.treesitter.start(bufnr, 'markdown')
  end
  for _, key in ipairs({ 'q', '<Esc>' }) do
    vim.keymap.set('n', key, '<Cmd>close<CR>', { buffer = bufnr, nowait = true, desc = 'Close' })
  end
  return bufnr
end

--- Opens a buffer whose text `:w` stores; closing it without that stores nothing.
---@param name string
---@param lines string[]
---@param write fun(text: string)
---@return integer bufnr
function M.editor(name, lines, write)
  local bufnr = api.nvim_create_buf(false, false)
  vim.bo[bufnr].buftype = 'acwrite'
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.bo[bufnr].swapfile = false
  api.nvim_buf_set_name(bufnr, ('kode://%s/%d'):format(name, bufnr))
  api.nvim_buf_set_lines(bufnr, 0, -1, false, flat(lines))
  vim.bo[bufnr].modified = false
  api.nvim_create_autocmd('BufWriteCmd', {
    buffer = bufnr,
    callback = function()
      local text = table.concat(api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n')
      vim.bo[bufnr].modified = false
      write(text)
    end,
  })
  return bufnr
end

return M
