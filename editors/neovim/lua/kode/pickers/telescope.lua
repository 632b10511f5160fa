--- The picker of telescope.nvim.
---
--- Rule: an action closes the list before it acts, because what it shows may be another list.

local foreign = require('kode.foreign')
local picker = require('kode.picker')

---@param options kode.PickerOptions
return function(options)
  local actions, state = foreign('telescope.actions'), foreign('telescope.actions.state')
  local values = foreign('telescope.config').values
  local previewer
  if options.preview or options.about then
    previewer = foreign('telescope.previewers').new_buffer_previewer({
      title = options.title,
      define_preview = function(self, entry)
        local bufnr, window = self.state.bufnr, self.state.winid
        -- Telescope sets its own options of the window after this.
        vim.schedule(function()
          if vim.api.nvim_win_is_valid(window) then
            vim.wo[window].wrap = true
            vim.wo[window].linebreak = true
          end
        end)
        picker.preview(options, entry.value, function(preview)
          picker.fill(bufnr, preview)
        end)
      end,
    })
  end
  local function close_and(bufnr, act)
    return function()
      local entry = state.get_selected_entry()
      actions.close(bufnr)
      if entry then
        vim.schedule(function()
          act(entry.value)
        end)
      end
    end
  end
  foreign('telescope.pickers')
    .new({}, {
      prompt_title = options.title,
      finder = foreign('telescope.finders').new_table({
        results = options.items,
        entry_maker = function(item)
          local text = options.format(item)
          return { value = item, display = text, ordinal = text }
        end,
      }),
      sorter = values.generic_sorter({}),
      previewer = previewer,
      attach_mappings = function(bufnr, map)
        actions.select_default:replace(close_and(bufnr, options.choose))
        for _, action in ipairs(options.actions or {}) do
          map({ 'i', 'n' }, action.key, close_and(bufnr, action.act), { desc = action.label })
        end
        return true
      end,
    })
    :find()
end
