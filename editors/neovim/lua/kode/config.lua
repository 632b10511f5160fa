--- The settings of the client, with their defaults.
---
--- Rule: every setting has a default here, and a value of another type is refused with a sentence that names it.

---@class kode.TranscriptConfig
---@field interval integer Milliseconds between two updates of the transcript while an answer streams.
---@field items integer Items that are asked for when a session is loaded.
---@field max_items integer Items that are kept in the buffer; the oldest are left out beyond it.
---@field card_lines integer Lines that an open card shows; `K` shows all of them.
---@field highlight_lines integer Lines, counted from the end, whose Markdown is highlighted when a session is loaded.
---@field linear boolean Whether the state of a card is text of its line, for screen readers, instead of virtual text.
---@field ascii boolean Whether signs are plain ASCII.
---@field conceal boolean Whether the markers of Markdown are concealed in finished messages.

---@alias kode.Keymaps table<string, string|string[]|false> Keys by the names of maps; false for none.

---@class kode.KeymapsConfig
---@field transcript kode.Keymaps
---@field prompt kode.Keymaps
---@field review boolean|kode.Keymaps Whether buffers with changes to review get the maps of |kode-maps-review|, or which.

---@class kode.Config
---@field cmd string[] How the server is started.
---@field init_options table What the server is given as `initializationOptions`.
---@field root_markers string[] Names that mark the root of a project.
---@field layout "split"|"float"|"tab"|"current" Where the conversation opens.
---@field width number Width of the split or float: columns, or a part of the screen when it is less than 1.
---@field prompt_height integer Lines of the prompt's window.
---@field start_insert boolean Whether opening the conversation begins Insert mode in the prompt.
---@field keymaps kode.KeymapsConfig The keys of the plugin's buffers and of buffers with changes to review.
---@field picker "auto"|"snacks"|"telescope"|"fzf-lua"|"mini.pick"|"select" What lists are shown in; auto: the first that is there.
---@field write_clean_buffers boolean Whether a buffer that was unmodified before an edit of the agent is written after it.
---@field notify boolean Whether what waits for you is reported by |vim.notify()| when no transcript shows it.
---@field progress boolean Whether Neovim's own progress messages report running turns (0.12).
---@field settle integer Milliseconds for which a prompt that has just moved under the cursor takes no keys.
---@field restarts integer Crashes within three minutes after which the server is not started again.
---@field transcript kode.TranscriptConfig The transcript.

local M = {}

---@type kode.Config
M.defaults = {
  cmd = { 'kode-ls' },
  init_options = {},
  root_markers = { '.git', '.hg', '.jj', '.kode' },
  layout = 'split',
  width = 0.4,
  prompt_height = 6,
  start_insert = true,
  keymaps = { transcript = {}, prompt = {}, review = false },
  picker = 'auto',
  write_clean_buffers = true,
  notify = true,
  progress = false,
  settle = 300,
  restarts = 5,
  transcript = {
    interval = 50,
    items = 200,
    max_items = 4000,
    card_lines = 200,
    highlight_lines = 2000,
    linear = false,
    ascii = false,
    conceal = false,
  },
}

local choices = {
  layout = { 'split', 'float', 'tab', 'current' },
  picker = { 'auto', 'snacks', 'telescope', 'fzf-lua', 'mini.pick', 'select' },
}

--- Why the keys of one kind of buffer cannot be used.
---@param kind string
---@param keys table
---@return string?
local function check_keys(kind, keys)
  local names = {} ---@type table<string, boolean>
  for _, entry in ipairs(require('kode.maps').tables[kind]) do
    names[entry.name] = true
  end
  for name, value in pairs(keys) do
    if not names[name] then
      return ('keymaps.%s.%s is unknown; see :help kode-maps-%s'):format(kind, name, kind)
    elseif value ~= false and type(value) ~= 'string' and not vim.islist(value) then
      return ('keymaps.%s.%s must be a key, a list of keys, or false'):format(kind, name)
    end
  end
end

---@param keymaps any
---@return string?
local function check_keymaps(keymaps)
  if type(keymaps) ~= 'table' then
    return ('keymaps must be a table with transcript, prompt and review, not a %s'):format(type(keymaps))
  end
  for kind, keys in pairs(keymaps) do
    if type(keys) == 'table' and require('kode.maps').tables[kind] then
      local problem = check_keys(kind, keys)
      if problem then
        return problem
      end
    elseif kind ~= 'review' or type(keys) ~= 'boolean' then
      return ('keymaps.%s must be a table; its names are in :help kode-maps'):format(kind)
    end
  end
end

---@param defaults table
---@param given table
---@param where string
---@return string? problem
local function check(defaults, given, where)
  for key, value in pairs(given) do
    local default = defaults[key]
    if default == nil then
      return ('%s%s is unknown; see :help kode-settings'):format(where, key)
    elseif key == 'keymaps' then
      local problem = check_keymaps(value)
      if problem then
        return problem
      end
    elseif type(value) ~= type(default) then
      return ('%s%s must be a %s, not a %s'):format(where, key, type(default), type(value))
    elseif choices[key] and not vim.list_contains(choices[key], value) then
      return ('%s must be one of %s, not %s'):format(key, table.concat(choices[key], ', '), value)
    elseif type(value) == 'table' and not vim.islist(default) and key ~= 'init_options' then
      local problem = check(default, value, where .. key .. '.')
      if problem then
        return problem
      end
    end
  end
end

---@type kode.Config?
local current
---@type table
local given = {}

--- Why settings cannot be used; nil when they can.
---@param settings table
---@return string?
function M.problem(settings)
  if type(settings) ~= 'table' then
    return ('the settings must be a table, not a %s'):format(type(settings))
  end
  return check(M.defaults, settings, '')
end

--- Takes settings over; those that are not named stay as they are.
---@param settings table
function M.set(settings)
  local problem = M.problem(settings)
  if problem then
    error('kode: ' .. problem, 0)
  end
  given = vim.tbl_deep_extend('force', given, settings) --[[@as table]]
  current = nil
end

--- The settings in force: the defaults, `vim.g.kode`, and what `setup` was given.
---@return kode.Config
function M.get()
  if not current then
    local global = vim.g.kode or {}
    local problem = M.problem(global)
    if problem then
      vim.notify(('kode: vim.g.kode is not used: %s'):format(problem), vim.log.levels.ERROR)
      global = {}
    end
    current = vim.tbl_deep_extend('force', M.defaults, global, given)
  end
  return current
end

return M
