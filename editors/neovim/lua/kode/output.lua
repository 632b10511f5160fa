--- Looking closer at what the transcript shows: whole outputs, and the files that it names.
---
--- Rule: a name in the transcript was written by a model or a tool; it is opened only when it is a file that is there, and
--- never read as a command.

local api = vim.api
local render = require('kode.render')

local M = {}

--- Bytes of an output that are shown; there is more in the session's folder.
local MAX_BYTES = 1024 * 1024

---@param surface kode.Surface
---@param call kode.ToolCall
---@param read string[]
---@param offset integer
---@param done fun(text: string)
local function pages(surface, call, read, offset, done)
  surface:ask('agent/output/read', { callId = call.callId, offset = offset }, function(page)
    read[#read + 1] = page.text
    if page.nextOffset < page.totalBytes and page.nextOffset > offset and page.nextOffset < MAX_BYTES then
      return pages(surface, call, read, page.nextOffset, done)
    end
    if page.nextOffset < page.totalBytes then
      read[#read + 1] = ('\n… %d more bytes'):format(page.totalBytes - page.nextOffset)
    end
    done(table.concat(read))
  end)
end

---@param surface kode.Surface
---@param call kode.ToolCall
local function show_call(surface, call)
  local structured = type(call.structured) == 'table' and call.structured or {}
  if type(structured.unified) == 'string' then
    return require('kode.scratch').float(render.lines(structured.unified), { title = call.title, filetype = 'diff' })
  end
  local head = { call.name .. ' ' .. vim.json.encode(call.input), '' }
  if not call.endedAt then
    return require('kode.scratch').float(vim.list_extend(head, render.lines(call.display)), { title = call.title })
  end
  pages(surface, call, {}, 0, function(text)
    require('kode.scratch').float(vim.list_extend(head, render.lines(text)), { title = call.title })
  end)
end

--- Shows all of what stands at a row.
---@param transcript kode.Transcript
---@param row integer
function M.show(transcript, row)
  local surface = transcript:owner()
  local footer = transcript:footer_at(row)
  if footer then
    for _, prompt in ipairs(surface.session.permissions) do
      if prompt.permissionId == footer.id then
        local lines = require('kode.pending').permission_lines(prompt)
        local filetype = prompt.preview.type == 'diff' and 'diff' or nil
        return require('kode.scratch').float(lines, { title = prompt.title, filetype = filetype })
      end
    end
    return
  end
  local block = transcript:block_at(row)
  if block and block.item.body.type == 'toolCall' then
    show_call(surface, block.item.body --[[@as kode.ToolCall]])
  elseif block and block.item.body.type == 'thinking' then
    local thinking = block.item.body --[[@as kode.Thinking]]
    require('kode.scratch').float(render.lines(thinking.text), { title = 'Thinking', filetype = 'markdown' })
  end
end

---@param name string
---@param root string
---@return string?
local function existing(name, root)
  local path = vim.fn.isabsolutepath(name) == 1 and name or vim.fs.joinpath(root, name)
  local stat = vim.uv.fs_stat(path)
  return stat and stat.type == 'file' and vim.fs.normalize(path, { expand_env = false }) or nil
end

--- The file and line that a piece of text names, such as `src/a.lua:12` or `@src/a.lua#L10-20`.
---@param text string
---@param root string
---@return string? path
---@return integer? line
function M.named(text, root)
  local word = text:gsub('^[%s`"\'(<%[@]+', ''):gsub('[%s`"\')>%],.;]+$', '')
  for _, pattern in ipairs({ '^(.-):(%d+)', '^(.-)#L(%d+)' }) do
    local name, line = word:match(pattern)
    local path = name and name ~= '' and existing(name, root)
    if path then
      return path, tonumber(line) --[[@as integer]]
    end
  end
  local path = word ~= '' and existing(word, root)
  return path or nil
end

---@param call kode.ToolCall
---@param root string
---@return string?
local function file_of(call, root)
  local input = type(call.input) == 'table' and call.input or {}
  for _, key in ipairs({ 'file_path', 'path', 'notebook_path' }) do
    local path = type(input[key]) == 'string' and existing(input[key], root)
    if path then
      return path
    end
  end
end

--- The first line that a unified diff changes, counted in the new text.
---@param call kode.ToolCall
---@return integer?
local function line_of(call)
  local structured = type(call.structured) == 'table' and call.structured or {}
  local unified = type(structured.unified) == 'string' and structured.unified or ''
  local offset = type(call.input) == 'table' and tonumber(call.input.offset) or nil
  return tonumber(unified:match('@@ %-%d[%d,]* %+(%d+)')) --[[@as integer?]] or offset --[[@as integer?]]
end

--- Goes to the file that a row names, in the window beside the conversation.
---@param transcript kode.Transcript
---@param row integer
function M.go(transcript, row)
  local root = transcript:owner().connection.root
  local path, line = M.named(vim.fn.expand('<cWORD>') --[[@as string]], root)
  local block = transcript:block_at(row)
  if not path and block and block.item.body.type == 'toolCall' then
    local call = block.item.body --[[@as kode.ToolCall]]
    path, line = file_of(call, root), line_of(call)
  end
  if not path then
    return vim.notify('kode: there is no file of that name here', vim.log.levels.INFO)
  end
  local window = require('kode.layout').work_window()
  api.nvim_set_current_win(window)
  vim.cmd("normal! m'")
  local bufnr = vim.fn.bufadd(path)
  vim.bo[bufnr].buflisted = true
  api.nvim_win_set_buf(window, bufnr)
  if line then
    api.nvim_win_set_cursor(window, { math.min(line, api.nvim_buf_line_count(bufnr)), 0 })
  end
end

return M
