--- The picker of mini.pick.
---
--- Rule: it shows its preview on its own key, so a text that has to be judged is opened at once.

local picker = require('kode.picker')
local pick = _G.MiniPick

---@param options kode.PickerOptions
return function(options)
  local entries = {}
  for number, item in ipairs(options.items) do
    entries[number] = { text = options.format(item), item = item }
  end
  local mappings = {}
  for number, action in ipairs(options.actions or {}) do
    mappings['kode_' .. number .. '_' .. action.label:lower():gsub('%W+', '_')] = {
      char = action.key,
      func = function()
        local current = pick.get_picker_matches().current
        if current then
          vim.schedule(function()
            action.act(current.item)
          end)
        end
        return true
      end,
    }
  end
  local window = options.about and require('kode.pickers.about').open(options.about, options.title)
  pick.start({
    source = {
      items = entries,
      name = options.title,
      preview = function(bufnr, entry)
        picker.preview(options, entry.item, function(preview)
          picker.fill(bufnr, preview)
        end)
      end,
      choose = function(entry)
        vim.schedule(function()
          options.choose(entry.item)
        end)
      end,
    },
    mappings = mappings,
  })
  if window and vim.api.nvim_win_is_valid(window) then
    vim.api.nvim_win_close(window, true)
  end
end
