--- The picker of fzf-lua.
---
--- Rule: an item is known by its number, which the list hides; its text is never read back.

local foreign = require('kode.foreign')
local picker = require('kode.picker')

--- `<C-r>` as fzf writes it: `ctrl-r`.
---@param key string
---@return string
local function fzf_key(key)
  return (key:gsub('^<[Cc]%-(.)>$', 'ctrl-%1'):gsub('^<[MmAa]%-(.)>$', 'alt-%1'):lower())
end

--- The item of a line of the list.
---@param options kode.PickerOptions
---@param line? string
---@return any
local function item_of(options, line)
  local number = line and tonumber(line:match('^%d+'))
  return number and options.items[number --[[@as integer]]]
end

---@param options kode.PickerOptions
---@return table?
local function previewer(options)
  if not options.preview and not options.about then
    return nil
  end
  local Preview = foreign('fzf-lua.previewer.builtin').base:extend()
  function Preview:new(o, opts)
    Preview.super.new(self, o, opts)
    setmetatable(self, Preview)
    return self
  end
  function Preview:gen_winopts()
    return vim.tbl_extend('force', self.winopts, { wrap = true, linebreak = true, number = false })
  end
  function Preview:populate_preview_buf(entry)
    local item = item_of(options, entry)
    local bufnr = self:get_tmp_buffer()
    self:set_preview_buf(bufnr)
    picker.preview(options, item, function(preview)
      picker.fill(bufnr, preview)
    end)
  end
  return Preview
end

---@param options kode.PickerOptions
return function(options)
  local lines = {}
  for number, item in ipairs(options.items) do
    lines[number] = ('%d\t%s'):format(number, (options.format(item):gsub('[\t\n]', ' ')))
  end
  local function with_item(act)
    return function(selected)
      local item = item_of(options, selected and selected[1])
      if item ~= nil then
        act(item)
      end
    end
  end
  local actions, hints = { enter = with_item(options.choose) }, {}
  for _, action in ipairs(options.actions or {}) do
    actions[fzf_key(action.key)] = with_item(action.act)
    hints[#hints + 1] = ('%s: %s'):format(fzf_key(action.key), action.label)
  end
  foreign('fzf-lua').fzf_exec(lines, {
    prompt = '> ',
    winopts = { title = (' %s '):format(options.title), preview = { hidden = false } },
    previewer = previewer(options),
    actions = actions,
    fzf_opts = {
      ['--no-multi'] = true,
      ['--delimiter'] = '\t',
      ['--with-nth'] = '2..',
      ['--header'] = #hints > 0 and table.concat(hints, '  ') or nil,
    },
  })
end
