--- Choosing one of several items: with the picker plugin the user has, else with `vim.ui.select`.
---
--- Rule: the title is one short line; whatever else has to be judged is a preview. Leaving a picker does nothing, and an
--- action acts on the item under the cursor alone.

local config = require('kode.config')

---@class kode.PickerPreview
---@field lines string[]
---@field filetype? string

---@class kode.PickerAction
---@field key string As in a map: `<C-r>`.
---@field label string
---@field act fun(item: any)

---@class kode.PickerOptions
---@field title string One line.
---@field items any[]
---@field format fun(item: any): string One line for an item.
---@field choose fun(item: any)
---@field about? kode.PickerPreview A text that concerns every item; a picker without previews shows it above its list.
---@field preview? fun(item: any, show: fun(preview: kode.PickerPreview)) May show it later.
---@field actions? kode.PickerAction[]
---@field verb? string What choosing does, where it is offered beside actions.

local M = {}

--- The plugins, the first that is there is used.
---@type { name: string, module: string }[]
local plugins = {
  { name = 'snacks', module = 'snacks' },
  { name = 'telescope', module = 'telescope' },
  { name = 'fzf-lua', module = 'fzf-lua' },
  { name = 'mini.pick', module = 'mini.pick' },
}

---@param name string
---@return boolean
local function is_usable(name)
  if name == 'fzf-lua' then
    return vim.fn.executable('fzf') == 1 or vim.fn.executable('sk') == 1
  elseif name == 'mini.pick' then
    -- mini.nvim brings every module; only one that was set up is wanted.
    return _G.MiniPick ~= nil
  elseif name == 'snacks' then
    return _G.Snacks ~= nil and vim.tbl_get(_G.Snacks, 'config', 'picker', 'enabled') ~= false
  end
  return true
end

--- The backend in use.
---@return string
function M.backend()
  local wanted = config.get().picker
  if wanted ~= 'auto' then
    return wanted
  end
  for _, is_loaded in ipairs({ true, false }) do
    for _, plugin in ipairs(plugins) do
      local found = package.loaded[plugin.module] ~= nil or (not is_loaded and pcall(require, plugin.module))
      if found and is_usable(plugin.name) then
        return plugin.name
      end
    end
  end
  return 'select'
end

--- The preview of an item: its own, and the text that concerns all of them.
---@param options kode.PickerOptions
---@param item any
---@param show fun(preview: kode.PickerPreview)
function M.preview(options, item, show)
  if options.preview then
    return options.preview(item, show)
  end
  show(options.about or { lines = {} })
end

--- Fills a preview buffer.
---@param bufnr integer
---@param preview kode.PickerPreview
function M.fill(bufnr, preview)
  if not vim.api.nvim_buf_is_valid(bufnr) then
    return
  end
  local lines = {} ---@type string[]
  for _, line in ipairs(preview.lines) do
    vim.list_extend(lines, vim.split(line, '\n', { plain = true }))
  end
  vim.bo[bufnr].modifiable = true
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  if preview.filetype == 'markdown' and vim.treesitter.language.add('markdown') then
    vim.treesitter.start(bufnr, 'markdown')
  elseif preview.filetype then
    vim.bo[bufnr].syntax = preview.filetype
  end
end

--- Opens a picker.
---@param options kode.PickerOptions
function M.open(options)
  if #options.items == 0 then
    return vim.notify('kode: there is nothing to choose', vim.log.levels.INFO)
  end
  -- `fzf-lua` and `mini.pick` are in `fzf.lua` and `mini.lua`.
  require('kode.pickers.' .. M.backend():match('^%a+'))(options)
end

return M
