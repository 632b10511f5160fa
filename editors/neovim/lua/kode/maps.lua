--- The keys of the plugin's own buffers, and of buffers with changes to review.
---
--- Rule: the tables here are the maps, the list that `g?` shows, and the names in the setting `keymaps`. Number keys answer a
--- prompt only in Normal mode with the cursor on it; everywhere else they count.

local api = vim.api

---@class kode.Map
---@field name string Its name in the setting `keymaps`.
---@field modes string[]
---@field keys string[]
---@field text string
---@field act fun(owner: any)

local M = {}

---@return integer
local function row()
  return api.nvim_win_get_cursor(0)[1] - 1
end

---@param target? integer
local function go_to_row(target)
  if target then
    vim.cmd("normal! m'")
    api.nvim_win_set_cursor(0, { target + 1, 0 })
  end
end

---@param name string
---@param keys string[]
---@param text string
---@param act fun(owner: any)
---@param modes? string[]
---@return kode.Map
local function map(name, keys, text, act, modes)
  return { name = name, modes = modes or { 'n' }, keys = keys, text = text, act = act }
end

---@param name string
---@return fun()
local function command(name)
  return function()
    vim.cmd.Kode({ args = vim.split(name, ' ') })
  end
end

--- Keys that do the same in the transcript and in the prompt.
---@return kode.Map[]
local function common()
  return {
    map('allow', { 'ga' }, 'allow the oldest prompt once', function(owner)
      owner:owner():quick_answer('allow')
    end),
    map('deny', { 'gd' }, 'deny the oldest prompt', function(owner)
      owner:owner():quick_answer('deny')
    end),
    map('deny_with_reason', { 'gw' }, 'deny it and say why', function(owner)
      owner:owner():quick_answer('reason')
    end),
    map('stop', { '<C-c>' }, 'stop the turn', function(owner)
      owner:owner():stop()
    end),
    map('close', { 'q' }, 'close the windows; the conversation goes on', function()
      require('kode.layout').close()
    end),
  }
end

---@type kode.Map[]
local transcript = {
  map('toggle', { '<Tab>' }, 'open or close the card', function(owner)
    owner:toggle(row())
  end),
  map('details', { 'K' }, 'show all: whole output, whole prompt', function(owner)
    require('kode.output').show(owner, row())
  end),
  map('go', { 'gf', '<CR>' }, 'go to the file, give the answer, or open the diff under the cursor', function(owner)
    require('kode.output').go(owner, row())
  end),
  map('next_message', { ']]' }, 'next message', function(owner)
    go_to_row(owner:heading(row(), 1))
  end),
  map('previous_message', { '[[' }, 'previous message', function(owner)
    go_to_row(owner:heading(row(), -1))
  end),
  map('next_question', { ']p' }, 'next prompt that waits for you; number keys answer it', function(owner)
    go_to_row(owner:waiting_row(row()) or owner:waiting_row())
  end),
  map('older', { 'go' }, 'show older messages', function(owner)
    owner:owner():older()
  end),
  map('write', { 'i', 'a' }, 'write in the prompt', function(owner)
    require('kode.layout').open(owner:owner())
    vim.cmd.startinsert({ bang = true })
  end),
  map('yank_code', { 'gy' }, 'yank the code block', function(owner)
    require('kode.code').yank(owner, row())
  end),
  map('insert_code', { 'gi' }, 'insert the code block below the cursor of your file', function(owner)
    require('kode.code').insert(owner, row())
  end),
  map('apply_code', { 'gA' }, 'have the code block put where it belongs', function(owner)
    require('kode.code').apply(owner, row())
  end),
  map('edit_again', { 'ge' }, 'go back to before this prompt and edit it', function(owner)
    owner:edit_again(row())
  end),
  map('queue', { 'gQ' }, 'change the queue', command('queue')),
  map('review', { 'gR' }, 'list the changes to review', command('review')),
}
vim.list_extend(transcript, common())

---@type kode.Map[]
local prompt = {
  map('send', { '<CR>' }, 'send; while a turn runs, queue', function(owner)
    owner:owner():send_prompt()
  end),
  map('send_insert', { '<C-s>' }, 'send from Insert mode', function(owner)
    owner:owner():send_prompt()
  end, { 'i' }),
  map('steer', { '<M-CR>', '<C-CR>' }, 'send to the running turn now', function(owner)
    owner:owner():send_prompt('steer')
  end, { 'n', 'i' }),
  map('next_question', { ']p' }, 'go to the prompt that waits for you', function(owner)
    require('kode.layout').go_to_question(owner:owner())
  end),
  map('transcript', { '<Tab>' }, 'go to the transcript', function(owner)
    require('kode.layout').go_to_transcript(owner:owner())
  end),
  map('next_mode', { '<S-Tab>' }, 'next mode', function(owner)
    owner:owner():next_mode()
  end, { 'n', 'i' }),
  map('paste_image', { 'gp' }, 'attach the image in the clipboard', command('paste')),
  map('send_comments', { 'gC' }, 'send your comments on lines', command('comments send')),
  map('previous_sent', { '[[' }, 'the prompt sent before', function(owner)
    owner:recall(-1)
  end),
  map('next_sent', { ']]' }, 'the prompt sent after it', function(owner)
    owner:recall(1)
  end),
}
vim.list_extend(prompt, common())

---@type kode.Map[]
local review = {}
for _, entry in ipairs({
  { 'next', ']k', 'next change' },
  { 'previous', '[k', 'previous change' },
  { 'keep', '<Leader>kk', 'keep the change' },
  { 'undo', '<Leader>ku', 'undo the change' },
  { 'diff', '<Leader>kd', 'show the change as a diff' },
  { 'comment', '<Leader>kc', 'comment on the line' },
}) do
  local name, keys, text = entry[1], entry[2], entry[3]
  review[#review + 1] = map(name, { keys }, text, function() end, { 'n', 'x' })
end

--- The maps of each kind of buffer.
---@type table<string, kode.Map[]>
M.tables = { transcript = transcript, prompt = prompt, review = review }

--- The keys of a map: the user's, else its own. None when the user has switched it off.
---@param kind string
---@param entry kode.Map
---@return string[]
function M.keys(kind, entry)
  local wanted = require('kode.config').get().keymaps[kind]
  local keys = type(wanted) == 'table' and wanted[entry.name]
  if keys == nil or type(wanted) ~= 'table' then
    return entry.keys
  elseif keys == false then
    return {}
  end
  return type(keys) == 'string' and { keys } or keys --[[@as string[] ]]
end

--- The first key of a map, for hints; nil when it has none.
---@param kind string
---@param name string
---@return string?
function M.key(kind, name)
  for _, entry in ipairs(M.tables[kind]) do
    if entry.name == name then
      return M.keys(kind, entry)[1]
    end
  end
end

---@param kind string
local function help(kind)
  local lines = {} ---@type string[]
  local function add(keys, text)
    if #keys > 0 then
      lines[#lines + 1] = ('%-18s %s'):format(table.concat(keys, ' '), text)
    end
  end
  for _, entry in ipairs(M.tables[kind]) do
    add(M.keys(kind, entry), entry.text)
  end
  if kind == 'prompt' then
    add({ '@', '/' }, 'complete files and more, commands; <C-x><C-u> too')
  else
    add({ '1', '…', '9' }, 'answer the prompt under the cursor')
  end
  add({ 'g?' }, 'this list')
  require('kode.scratch').float(lines, { title = kind == 'prompt' and 'Prompt' or 'Transcript' })
end

---@param kind string
---@param bufnr integer
---@param owner any
local function set(kind, bufnr, owner)
  for _, entry in ipairs(M.tables[kind]) do
    for _, key in ipairs(M.keys(kind, entry)) do
      vim.keymap.set(entry.modes, key, function()
        entry.act(owner)
      end, { buffer = bufnr, desc = 'Kode: ' .. entry.text, nowait = true })
    end
  end
  vim.keymap.set('n', 'g?', function()
    help(kind)
  end, { buffer = bufnr, desc = 'Kode: list the keys', nowait = true })
end

--- Acts on a number key in the transcript: it answers the prompt under the cursor, else it counts.
---@param owner kode.Transcript
---@param key string
---@return string
local function number_key(owner, key)
  local footer = vim.v.count == 0 and owner:footer_at(row()) or nil
  if not footer or #footer.choices == 0 then
    return key
  end
  for _, choice in ipairs(footer.choices) do
    if choice.key == key then
      vim.schedule(function()
        owner:choose(choice)
      end)
      return ''
    end
  end
  return key
end

---@param owner kode.Transcript
function M.transcript(owner)
  set('transcript', owner.buffer, owner)
  for number = 1, 9 do
    local key = tostring(number)
    vim.keymap.set('n', key, function()
      return number_key(owner, key)
    end, { buffer = owner.buffer, expr = true, desc = 'Kode: answer the prompt under the cursor' })
  end
end

---@param owner kode.Prompt
function M.prompt(owner)
  set('prompt', owner.buffer, owner)
end

--- The keys that move between the two windows of a float: Neovim's own leave for the window behind them.
---@param view kode.View
function M.float(view)
  local function move(bufnr, key, to)
    vim.keymap.set('n', key, function()
      local current = require('kode.layout').view()
      if current and current.layout == 'float' and api.nvim_win_is_valid(current[to]) then
        return api.nvim_set_current_win(current[to])
      end
      vim.cmd.wincmd(key:sub(-1))
    end, { buffer = bufnr, desc = 'Kode: go to the ' .. to, nowait = true })
  end
  local upper, lower = api.nvim_win_get_buf(view.transcript), api.nvim_win_get_buf(view.prompt)
  move(lower, '<C-w>k', 'transcript')
  move(upper, '<C-w>j', 'prompt')
end

--- Sets or removes the maps of a buffer with changes to review, where the user wants them.
---@param bufnr integer
---@param wanted boolean
function M.review(bufnr, wanted)
  if not require('kode.config').get().keymaps.review then
    return
  end
  for _, entry in ipairs(review) do
    local description = 'Kode: ' .. entry.text
    for _, mode in ipairs(entry.modes) do
      for _, key in ipairs(wanted and M.keys('review', entry) or {}) do
        local plug = ('<Plug>(kode-%s)'):format(entry.name)
        vim.keymap.set(mode, key, plug, { buffer = bufnr, remap = true, desc = description })
      end
      for _, set_map in ipairs(wanted and {} or api.nvim_buf_get_keymap(bufnr, mode)) do
        if set_map.desc == description then
          vim.keymap.del(mode, set_map.lhs, { buffer = bufnr })
        end
      end
    end
  end
end

return M
