--- The picker of everybody: `vim.ui.select`, as Neovim has it or as a plugin has replaced it.
---
--- Rule: the text to judge is in a window of its own above the list, and is gone with the list.

local about = require('kode.pickers.about')

---@param options kode.PickerOptions
---@param item any
local function act(options, item)
  local actions = options.actions or {}
  if #actions == 0 then
    return options.choose(item)
  end
  local entries = vim.list_extend({ { label = options.verb or 'Open', act = options.choose } }, actions)
  vim.ui.select(entries, {
    prompt = options.format(item),
    kind = 'kode',
    format_item = function(entry)
      return entry.label
    end,
  }, function(entry)
    if entry then
      entry.act(item)
    end
  end)
end

---@param options kode.PickerOptions
return function(options)
  local window = options.about and about.open(options.about, options.title, #options.items)
  vim.ui.select(options.items, {
    prompt = options.title,
    kind = 'kode',
    format_item = options.format,
  }, function(item)
    if window and vim.api.nvim_win_is_valid(window) then
      vim.api.nvim_win_close(window, true)
    end
    if item ~= nil then
      act(options, item)
    end
  end)
end
