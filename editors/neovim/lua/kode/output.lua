--- Details of the transcript: whole outputs and prompts, and the files that it names.
---
--- Rule: a name in the transcript was written by a model or a tool. It is opened only when such a file exists, and never read
--- as a command.

local api = vim.api
local render = require('kode.render')

local M = {}

--- Bytes of an output that are shown; the session's folder has the rest.
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

--- The arguments of a call, one after the other; longer texts on lines of their own.
---@param call kode.ToolCall
---@return string[]
local function call_lines(call)
  local lines = { '# ' .. render.call_title(call), '' }
  local input = type(call.input) == 'table' and call.input or {}
  for name, value in vim.spairs(input) do
    local text = type(value) == 'string' and value or vim.json.encode(value)
    local values = render.lines(render.exact(text))
    if #values == 1 then
      lines[#lines + 1] = ('%s: %s'):format(name, values[1])
    else
      lines[#lines + 1] = name .. ':'
      for _, line in ipairs(values) do
        lines[#lines + 1] = '  ' .. line
      end
    end
  end
  lines[#lines + 1] = ''
  return lines
end

---@param surface kode.Surface
---@param call kode.ToolCall
local function show_call(surface, call)
  local scratch, title = require('kode.scratch'), render.call_title(call)
  local structured = type(call.structured) == 'table' and call.structured or {}
  if type(structured.unified) == 'string' then
    return scratch.float(render.lines(structured.unified), { title = title, filetype = 'diff' })
  end
  local head = call_lines(call)
  if not call.endedAt or call.state == 'DENIED' then
    return scratch.float(vim.list_extend(head, render.lines(call.display)), { title = title })
  end
  pages(surface, call, {}, 0, function(text)
    text = text ~= '' and text or call.display
    scratch.float(vim.list_extend(head, render.lines(text)), { title = title })
  end)
end

---@param lines kode.StyledLine[]
---@return string[]
local function texts(lines)
  return vim.tbl_map(function(line)
    return line.text
  end, lines)
end

---@param surface kode.Surface
---@param id string
---@return kode.PermissionPrompt?
local function permission_of(surface, id)
  for _, prompt in ipairs(surface.session.permissions) do
    if prompt.permissionId == id then
      return prompt
    end
  end
end

--- Shows all of a prompt that waits for the user.
---@param surface kode.Surface
---@param id string
local function show_prompt(surface, id)
  local scratch, prompt = require('kode.scratch'), permission_of(surface, id)
  if prompt then
    local filetype = prompt.preview.type == 'diff' and 'diff' or nil
    local lines = texts(require('kode.permission').whole(prompt))
    return scratch.float(lines, { title = render.exact_line(prompt.title), filetype = filetype })
  end
  for _, question in ipairs(surface.session.questions) do
    if question.questionId == id then
      local lines = texts(require('kode.pending').whole_question(question))
      return scratch.float(lines, { title = 'Question', filetype = 'markdown' })
    end
  end
end

--- Shows the whole content of a row.
---@param transcript kode.Transcript
---@param row integer
function M.show(transcript, row)
  local surface = transcript:owner()
  local footer = transcript:footer_at(row)
  if footer then
    return show_prompt(surface, footer.id)
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

--- Opens a file in the window beside the conversation.
---@param path string
---@param line? integer
local function open_file(path, line)
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

--- Acts on a row: gives the answer on it, opens the diff of the prompt, or goes to the file that it names.
---@param transcript kode.Transcript
---@param row integer
function M.go(transcript, row)
  local surface = transcript:owner()
  local choice, footer = transcript:choice_at(row), transcript:footer_at(row)
  if choice then
    return transcript:choose(choice)
  elseif footer then
    local prompt = permission_of(surface, footer.id)
    if prompt and prompt.preview.type == 'diff' then
      return require('kode.diff').proposal(surface, prompt)
    end
    return show_prompt(surface, footer.id)
  end
  local root = surface.connection.root
  local path, line = M.named(vim.fn.expand('<cWORD>') --[[@as string]], root)
  local block = transcript:block_at(row)
  if not path and block and block.item.body.type == 'toolCall' then
    local call = block.item.body --[[@as kode.ToolCall]]
    path, line = file_of(call, root), line_of(call)
  end
  if path then
    return open_file(path, line)
  end
  local key = surface.session:waiting() > 0 and require('kode.maps').key('transcript', 'next_question')
  local hint = key and ('; %s goes to the prompt that waits for you'):format(key) or ''
  vim.notify('kode: no file is named here' .. hint, vim.log.levels.INFO)
end

return M
