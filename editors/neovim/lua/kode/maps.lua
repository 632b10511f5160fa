--- The keys of the plugin's own buffers, and the `<Plug>` maps for everywhere else.
---
--- Rule: the tables here are the maps and the list that `g?` shows. Keys that answer a prompt do so only in Normal mode with
--- the cursor on that prompt, and are what they always are everywhere else.

local api = vim.api

---@class kode.Map
---@field modes string[]
---@field keys string[]
---@field text string
---@field act fun(owner: any)

local M = {}

---@param bufnr integer
---@param maps kode.Map[]
---@param owner any
local function set(bufnr, maps, owner)
  for _, map in ipairs(maps) do
    for _, key in ipairs(map.keys) do
      vim.keymap.set(map.modes, key, function()
        map.act(owner)
      end, { buffer = bufnr, desc = 'kode: ' .. map.text, nowait = true })
    end
  end
end

---@param maps kode.Map[]
---@param title string
local function help(maps, title)
  local lines = {}
  for _, map in ipairs(maps) do
    lines[#lines + 1] = ('%-16s %s'):format(table.concat(map.keys, ' '), map.text)
  end
  require('kode.scratch').float(lines, { title = title })
end

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

---@type kode.Map[]
local transcript
transcript = {
  {
    modes = { 'n' },
    keys = { '<Tab>' },
    text = 'open or close the card',
    act = function(owner)
      owner:toggle(row())
    end,
  },
  {
    modes = { 'n' },
    keys = { 'K' },
    text = 'show all of it: whole output, whole prompt',
    act = function(owner)
      require('kode.output').show(owner, row())
    end,
  },
  {
    modes = { 'n' },
    keys = { 'gf', '<CR>' },
    text = 'go to the file under the cursor, or of the card',
    act = function(owner)
      require('kode.output').go(owner, row())
    end,
  },
  {
    modes = { 'n' },
    keys = { ']]' },
    text = 'next message',
    act = function(owner)
      go_to_row(owner:heading(row(), 1))
    end,
  },
  {
    modes = { 'n' },
    keys = { '[[' },
    text = 'message before',
    act = function(owner)
      go_to_row(owner:heading(row(), -1))
    end,
  },
  {
    modes = { 'n' },
    keys = { ']p' },
    text = 'next thing that waits for you; 1 to 9 answer it there',
    act = function(owner)
      go_to_row(owner:waiting_row(row()) or owner:waiting_row())
    end,
  },
  {
    modes = { 'n' },
    keys = { 'go' },
    text = 'show older messages',
    act = function(owner)
      owner:owner():older()
    end,
  },
  {
    modes = { 'n' },
    keys = { 'i', 'a' },
    text = 'write in the prompt',
    act = function(owner)
      require('kode.layout').open(owner:owner())
      vim.cmd.startinsert({ bang = true })
    end,
  },
  {
    modes = { 'n' },
    keys = { 'gQ' },
    text = 'change what waits in the queue',
    act = function(owner)
      require('kode.pick').queue(owner:owner())
    end,
  },
  {
    modes = { 'n' },
    keys = { 'gR' },
    text = 'changes to review into the quickfix list',
    act = function()
      vim.cmd.Kode('review')
    end,
  },
  {
    modes = { 'n' },
    keys = { '<C-c>' },
    text = 'stop',
    act = function(owner)
      owner:owner():stop()
    end,
  },
  {
    modes = { 'n' },
    keys = { 'q' },
    text = 'close the conversation; it goes on',
    act = function()
      require('kode.layout').close()
    end,
  },
  {
    modes = { 'n' },
    keys = { 'g?' },
    text = 'this list',
    act = function()
      help(transcript, 'Transcript')
    end,
  },
}

--- What a number key does in the transcript: answers the prompt under the cursor, else it counts.
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
      if not owner:is_settled() then
        vim.schedule(function()
          vim.notify('kode: this has only just come here; press the key again', vim.log.levels.WARN)
        end)
        return ''
      end
      vim.schedule(function()
        choice.act(owner:owner())
      end)
      return ''
    end
  end
  return key
end

---@param owner kode.Transcript
function M.transcript(owner)
  set(owner.buffer, transcript, owner)
  for number = 1, 9 do
    local key = tostring(number)
    vim.keymap.set('n', key, function()
      return number_key(owner, key)
    end, { buffer = owner.buffer, expr = true, desc = 'kode: answer what is asked under the cursor' })
  end
end

---@type kode.Map[]
local prompt
prompt = {
  {
    modes = { 'n' },
    keys = { '<CR>' },
    text = 'send; while a turn runs it waits for its end',
    act = function(owner)
      owner:owner():send_prompt()
    end,
  },
  {
    modes = { 'i' },
    keys = { '<C-s>' },
    text = 'send from Insert mode',
    act = function(owner)
      owner:owner():send_prompt()
    end,
  },
  {
    modes = { 'n', 'i' },
    keys = { '<M-CR>', '<C-CR>' },
    text = 'tell it the running turn now',
    act = function(owner)
      owner:owner():send_prompt('steer')
    end,
  },
  {
    modes = { 'n' },
    keys = { '<C-c>' },
    text = 'stop',
    act = function(owner)
      owner:owner():stop()
    end,
  },
  {
    modes = { 'n' },
    keys = { 'gp' },
    text = 'let the picture in the clipboard go with it',
    act = function()
      vim.cmd.Kode('paste')
    end,
  },
  {
    modes = { 'n' },
    keys = { 'gC' },
    text = 'send your comments on lines, all at once',
    act = function()
      vim.cmd.Kode({ args = { 'comments', 'send' } })
    end,
  },
  {
    modes = { 'n' },
    keys = { '[[' },
    text = 'the prompt you sent before',
    act = function(owner)
      owner:recall(-1)
    end,
  },
  {
    modes = { 'n' },
    keys = { ']]' },
    text = 'the prompt you sent after that',
    act = function(owner)
      owner:recall(1)
    end,
  },
  {
    modes = { 'n' },
    keys = { 'q' },
    text = 'close the conversation; it goes on',
    act = function()
      require('kode.layout').close()
    end,
  },
  {
    modes = { 'n' },
    keys = { 'g?' },
    text = 'this list',
    act = function()
      local lines = vim.list_extend({}, prompt)
      lines[#lines + 1] = { keys = { '@', '/' }, text = 'name files and more, commands; <C-x><C-u> completes' }
      help(lines, 'Prompt')
    end,
  },
}

---@param owner kode.Prompt
function M.prompt(owner)
  set(owner.buffer, prompt, owner)
end

---@type { keys: string, plug: string }[]
local review = {
  { keys = ']k', plug = '<Plug>(kode-next)' },
  { keys = '[k', plug = '<Plug>(kode-previous)' },
  { keys = '<Leader>kk', plug = '<Plug>(kode-keep)' },
  { keys = '<Leader>ku', plug = '<Plug>(kode-undo)' },
  { keys = '<Leader>kd', plug = '<Plug>(kode-diff)' },
  { keys = '<Leader>kc', plug = '<Plug>(kode-comment)' },
}

--- Sets or removes the maps of a buffer with changes to review, where the user wants them.
---@param bufnr integer
---@param wanted boolean
function M.review(bufnr, wanted)
  if not require('kode.config').get().keymaps then
    return
  end
  for _, mode in ipairs({ 'n', 'x' }) do
    for _, map in ipairs(wanted and review or {}) do
      vim.keymap.set(mode, map.keys, map.plug, { buffer = bufnr, remap = true, desc = 'kode: review' })
    end
    for _, map in ipairs(wanted and {} or api.nvim_buf_get_keymap(bufnr, mode)) do
      if map.desc == 'kode: review' then
        vim.keymap.del(mode, map.lhs, { buffer = bufnr })
      end
    end
  end
end

--- The maps of each kind of buffer.
---@type table<string, kode.Map[]>
M.tables = { transcript = transcript, prompt = prompt }

return M
