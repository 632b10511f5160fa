--- The files under the cursor of a file explorer: netrw, oil, neo-tree, nvim-tree, mini.files, snacks.
---
--- Rule: an explorer is only read, through the functions it documents, and one that is not loaded is not loaded here.

local api = vim.api

local M = {}

local loaded = require('kode.foreign')

---@type table<string, fun(): string?>
local explorers = {
  oil = function()
    local oil = loaded('oil')
    local entry, folder = oil.get_cursor_entry(), oil.get_current_dir()
    return entry and folder and vim.fs.joinpath(folder, entry.name)
  end,
  ['neo-tree'] = function()
    local state = loaded('neo-tree.sources.manager').get_state_for_window()
    local node = state and state.tree and state.tree:get_node()
    return node and node.path
  end,
  NvimTree = function()
    local node = loaded('nvim-tree.api').tree.get_node_under_cursor()
    return node and node.absolute_path
  end,
  minifiles = function()
    local entry = loaded('mini.files').get_fs_entry()
    return entry and entry.path
  end,
  snacks_picker_list = function()
    local list = loaded('snacks').picker.get({ source = 'explorer' })[1]
    local item = list and list:current()
    return item and item.file
  end,
  netrw = function()
    local name = vim.fn['netrw#Call']('NetrwGetWord')
    return vim.b.netrw_curdir and vim.fs.joinpath(vim.b.netrw_curdir, name)
  end,
}

--- Whether the current buffer belongs to an explorer.
---@return boolean
function M.is_here()
  return explorers[vim.bo.filetype] ~= nil
end

--- The paths of the entries in some lines of the current explorer.
---@param range? { first: integer, last: integer } The line of the cursor when absent.
---@return string[]
function M.paths(range)
  local window, cursor = api.nvim_get_current_win(), api.nvim_win_get_cursor(0)
  local first = range and range.first or cursor[1]
  local last = range and range.last or first
  local paths = {} ---@type string[]
  for row = first, last do
    api.nvim_win_set_cursor(window, { row, 0 })
    local ok, path = pcall(explorers[vim.bo.filetype])
    if ok and path and path ~= '' then
      paths[#paths + 1] = path
    end
  end
  api.nvim_win_set_cursor(window, cursor)
  return paths
end

return M
