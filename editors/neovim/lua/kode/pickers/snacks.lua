--- The picker of snacks.nvim.
---
--- Rule: an action closes the list before it acts, because what it shows may be another list.

local picker = require('kode.picker')

---@param options kode.PickerOptions
return function(options)
  local items = {}
  for number, item in ipairs(options.items) do
    items[number] = { text = options.format(item), idx = number, item = item }
  end
  local keys, actions, hints = {}, {}, {}
  local function close_and(act)
    return function(list, entry)
      list:close()
      if entry then
        vim.schedule(function()
          act(entry.item)
        end)
      end
    end
  end
  for number, action in ipairs(options.actions or {}) do
    local name = 'kode_' .. number
    actions[name] = close_and(action.act)
    keys[action.key] = { name, mode = { 'n', 'i' }, desc = action.label }
    hints[#hints + 1] = ('%s %s'):format(action.key, action.label)
  end
  actions.confirm = close_and(options.choose)
  local hint = #hints > 0 and (' (%s)'):format(table.concat(hints, ', ')) or ''
  local has_preview = options.preview ~= nil or options.about ~= nil
  require('kode.foreign')('snacks').picker.pick({
    source = 'kode',
    title = options.title .. hint,
    items = items,
    format = 'text',
    sort = { fields = { 'score:desc', 'idx' } },
    layout = { preset = has_preview and 'default' or 'select', preview = has_preview },
    preview = has_preview and function(context)
      context.preview:reset()
      context.preview:minimal()
      context.preview:set_title(options.title)
      local shown = context.item
      picker.preview(options, shown.item, function(preview)
        if context.picker.closed or context.picker:current() ~= shown and context.picker:current() ~= nil then
          return
        end
        context.preview:set_lines(vim.split(table.concat(preview.lines, '\n'), '\n', { plain = true }))
        context.preview:highlight({ ft = preview.filetype })
        context.preview:wo({ wrap = true, linebreak = true, number = false })
      end)
    end or 'none',
    actions = actions,
    win = { input = { keys = keys }, list = { keys = keys } },
  })
end
