--- Items of the transcript as lines and marks.
---
--- Rule: pure functions. Texts are shown as they are and never read as commands, maps or links. A block begins with an empty
--- line unless it joins the card above it, and a streaming text grows at the very end of its block.

---@class kode.Mark
---@field row integer The line in the block, from 0.
---@field column integer The byte in the line.
---@field options vim.api.keyset.set_extmark

---@class kode.Block
---@field lines string[]
---@field marks kode.Mark[]
---@field heading? boolean Whether `]]` stops here.
---@field grows? boolean Whether new text is added at its end.
---@field text_row? integer The row at which the text of a message begins, from 0.
---@field card_row? integer The row of a card's line, from 0.

---@class kode.RenderOptions
---@field expanded boolean
---@field linear boolean
---@field ascii boolean
---@field card_lines integer
---@field output? string The output of the call, as far as it is known.
---@field headed? boolean Whether a heading names the agent: one for all it does about a prompt.
---@field joined? boolean Whether it is directly below another card.
---@field subagent? kode.SubagentState

local M = {}

local signs = {
  closed = { '▸', '>' },
  open = { '▾', 'v' },
  PENDING = { '○', 'pending' },
  APPROVAL_REQUIRED = { '?', 'waiting for you' },
  EXECUTING = { '●', 'running' },
  COMPLETED = { '✓', 'done' },
  FAILED = { '✗', 'failed' },
  DENIED = { '⊘', 'denied' },
  SEALED = { '⊘', 'interrupted' },
}

local state_groups = {
  PENDING = 'KodeMeta',
  APPROVAL_REQUIRED = 'KodePermission',
  EXECUTING = 'KodeToolRunning',
  COMPLETED = 'KodeToolDone',
  FAILED = 'KodeToolFailed',
  DENIED = 'KodeToolDenied',
  SEALED = 'KodeToolDenied',
}

---@param name string
---@param ascii boolean
local function sign(name, ascii)
  local both = signs[name] or { '?', '?' }
  return ascii and both[2] or both[1]
end

--- A text on one line, control characters made visible.
---@param text string
---@return string
function M.line(text)
  return (text:gsub('%c', function(char)
    return char == '\n' and ' ' or char == '\t' and ' ' or ('^%c'):format((char:byte() + 64) % 128)
  end))
end

--- Code points that are invisible, steer the terminal or turn the direction of writing, from first to last.
local hidden = {
  { 0x00, 0x08 }, { 0x0b, 0x1f }, { 0x7f, 0x9f }, { 0xad, 0xad }, { 0x34f, 0x34f }, { 0x61c, 0x61c },
  { 0x115f, 0x1160 }, { 0x17b4, 0x17b5 }, { 0x180b, 0x180f }, { 0x200b, 0x200f }, { 0x2028, 0x202e },
  { 0x2060, 0x206f }, { 0x3164, 0x3164 }, { 0xe000, 0xf8ff }, { 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff },
  { 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb }, { 0xe0000, 0x10ffff },
}

---@param code integer
---@return boolean
local function is_hidden(code)
  for _, range in ipairs(hidden) do
    if code >= range[1] and code <= range[2] then
      return true
    end
  end
  return false
end

--- A text as it is judged: every character that could hide or paint over something is escaped, as the server escapes it.
---@param text string
---@return string
function M.exact(text)
  return (text:gsub('[%z\1-\8\11-\31\127]', function(char)
    return ('\\u{%x}'):format(char:byte())
  end):gsub('[\194-\244][\128-\191]+', function(char)
    local code = vim.fn.char2nr(char, true)
    return is_hidden(code) and ('\\u{%x}'):format(code) or nil
  end))
end

--- The same on one line: a line break is shown as `\\n`, so that no text adds lines of its own.
---@param text string
---@return string
function M.exact_line(text)
  return (M.exact(text):gsub('\n', '\\n'):gsub('\t', ' '))
end

--- A text of at most this many cells; the middle is left out.
---@param text string
---@param cells integer
---@return string
function M.shorten(text, cells)
  if vim.api.nvim_strwidth(text) <= cells then
    return text
  end
  local count = vim.fn.strchars(text)
  local head = math.floor((cells - 1) * 2 / 3)
  local first = vim.fn.strcharpart(text, 0, head)
  return first .. '…' .. vim.fn.strcharpart(text, count - (cells - 1 - head))
end

--- A number and its noun: `1 file`, `2 files`.
---@param number integer
---@param noun string
---@return string
function M.count(number, noun)
  return ('%d %s%s'):format(number, noun, number == 1 and '' or 's')
end

--- Screen rows that a line takes in a window of this width, with 'linebreak' and 'breakindent'.
---@param text string
---@param width integer
---@return integer
function M.rows(text, width)
  if #text <= width then
    return 1
  end
  local indent = #(text:match('^%s*') or '')
  local used, rows = 0, 1
  for chunk in text:gmatch('[^%s!@*+;:,./?%-]*[%s!@*+;:,./?%-]*') do
    local cells = vim.api.nvim_strwidth(chunk)
    if used > indent and used + cells > width then
      used, rows = indent, rows + 1
    end
    used = used + cells
    while used > width do
      used, rows = indent + used - width, rows + 1
    end
  end
  return rows
end

--- The lines of a text, without carriage returns at their ends.
---@param text string
---@return string[]
function M.lines(text)
  return vim.split((text:gsub('\r\n', '\n')), '\n', { plain = true })
end

--- Lines added and removed by a unified diff.
---@param unified string
---@return integer added
---@return integer removed
function M.counts(unified)
  local added, removed = 0, 0
  for line in unified:gmatch('[^\n]+') do
    local first = line:sub(1, 1)
    if first == '+' and line:sub(1, 4) ~= '+++ ' then
      added = added + 1
    elseif first == '-' and line:sub(1, 4) ~= '--- ' then
      removed = removed + 1
    end
  end
  return added, removed
end

--- The highlight group of a line of a unified diff.
---@param line string
---@return string?
function M.diff_group(line)
  if line:match('^@@') then
    return 'KodeMeta'
  end
  return ({ ['+'] = 'KodeAdded', ['-'] = 'KodeRemoved' })[line:sub(1, 1)]
end

---@param block kode.Block
---@param text string
---@param group? string
local function add(block, text, group)
  block.lines[#block.lines + 1] = text
  if group then
    block.marks[#block.marks + 1] = {
      row = #block.lines - 1,
      column = 0,
      options = { end_col = #text, hl_group = group },
    }
  end
end

--- An empty block, with the heading of the agent where it is the first thing it does about a prompt.
---@param options kode.RenderOptions
---@return kode.Block
local function agent_block(options)
  local block = { lines = {}, marks = {} } ---@type kode.Block
  if not options.joined or options.headed then
    block.lines[1] = ''
  end
  if options.headed then
    block.heading = true
    add(block, '## Kode', 'KodeAgent')
  end
  return block
end

---@return kode.Block
local function new_block()
  return { lines = { '' }, marks = {} }
end

--- A code fence that a text leaves open would take in everything after it.
---@param lines string[]
---@return string? closing
local function open_fence(lines)
  local fence
  for _, line in ipairs(lines) do
    local mark = line:match('^%s?%s?%s?(```+)') or line:match('^%s?%s?%s?(~~~+)')
    if mark and not fence then
      fence = mark
    elseif mark and fence and mark:sub(1, 1) == fence:sub(1, 1) and #mark >= #fence then
      fence = nil
    end
  end
  return fence
end

--- Whether an attachment is listed: the state of the editor goes with every prompt and is not.
---@param attachment kode.Attachment
---@return boolean
local function is_listed(attachment)
  return attachment.kind ~= 'editor' or attachment.problem ~= nil
end

---@param attachment kode.Attachment
---@return string
local function attachment_line(attachment)
  local size = attachment.lines and M.count(attachment.lines, 'line') or M.count(attachment.bytes, 'byte')
  local state = attachment.problem and ('not attached: ' .. attachment.problem) or attachment.cut and size .. ', cut' or size
  return ('  + %s (%s)'):format(M.line(attachment.label), M.line(state))
end

---@type table<string, fun(item: kode.Item, options: kode.RenderOptions): kode.Block>
local bodies = {}

function bodies.userMessage(item)
  local block, body = new_block(), item.body --[[@as kode.UserMessage]]
  block.heading = true
  add(block, body.steered and '## You, meanwhile' or '## You', 'KodeUser')
  for _, line in ipairs(M.lines(body.text)) do
    add(block, line)
  end
  for _, attachment in ipairs(vim.tbl_filter(is_listed, body.attachments or {})) do
    add(block, attachment_line(attachment), attachment.problem and 'KodeNoticeWarning' or 'KodeMeta')
  end
  return block
end

function bodies.agentMessage(item, options)
  local block, body = agent_block(options), item.body --[[@as kode.AgentMessage]]
  if #block.lines == 0 then
    block.lines[1] = ''
  end
  block.grows = not body.complete
  block.text_row = #block.lines
  local lines = M.lines(body.text)
  for _, line in ipairs(lines) do
    add(block, line)
  end
  if body.complete then
    local fence = open_fence(lines)
    if fence then
      add(block, fence)
    end
    if body.interrupted then
      add(block, '(interrupted)', 'KodeNoticeWarning')
    end
  end
  return block
end

function bodies.thinking(item, options)
  local block, body = agent_block(options), item.body --[[@as kode.Thinking]]
  local mark = sign(options.expanded and 'open' or 'closed', options.ascii)
  block.card_row = #block.lines
  add(block, ('%s Thinking%s'):format(mark, body.complete and '' or ' …'), 'KodeThinking')
  if options.expanded then
    block.grows = not body.complete
    for _, line in ipairs(M.lines(body.text)) do
      add(block, line, not block.grows and 'KodeThinking' or nil)
    end
  end
  return block
end

---@param call kode.ToolCall
---@return string?
local function unified(call)
  local structured = type(call.structured) == 'table' and call.structured or {}
  return type(structured.unified) == 'string' and structured.unified or nil
end

--- Whether a call has changed something that can be shown as a diff.
---@param call kode.ToolCall
---@return boolean
function M.has_diff(call)
  return unified(call) ~= nil
end

---@param call kode.ToolCall
---@param options kode.RenderOptions
---@return string
local function facts(call, options)
  local list = {} ---@type string[]
  local structured = type(call.structured) == 'table' and call.structured or {}
  local diff = unified(call)
  if diff then
    list[#list + 1] = ('+%d -%d'):format(M.counts(diff))
  end
  local code = structured.exitCode or structured.exit_code
  if type(code) == 'number' then
    list[#list + 1] = ('exit %d'):format(code)
  end
  list[#list + 1] = require('kode.time').duration(call.startedAt, call.endedAt)
  local agent = options.subagent
  if agent then
    list[#list + 1] = ('%s, %s'):format(agent.type, M.count(agent.calls, 'call'))
  end
  return table.concat(list, ', ')
end

--- Arguments that name the subject of a call, the first that is there counts.
local subjects = { 'command', 'file_path', 'path', 'notebook_path', 'pattern', 'url', 'query', 'description', 'prompt' }

--- The title of a call: of one that was refused before it had any, its tool and subject.
---@param call kode.ToolCall
---@return string
function M.call_title(call)
  if call.title ~= '' and call.title ~= call.name then
    return M.line(call.title)
  end
  local input = type(call.input) == 'table' and call.input or {}
  for _, key in ipairs(subjects) do
    if type(input[key]) == 'string' and input[key] ~= '' then
      return ('%s %s'):format(M.line(call.name), M.shorten(M.exact_line(input[key]), 80))
    end
  end
  return M.line(call.name)
end

---@param block kode.Block
---@param call kode.ToolCall
---@param options kode.RenderOptions
local function add_card_line(block, call, options)
  local mark = sign(options.expanded and 'open' or 'closed', options.ascii)
  local title, known = M.call_title(call), facts(call, options)
  local head = ('%s %s'):format(mark, sign(call.state, options.ascii or options.linear))
  if options.linear and known ~= '' then
    title = ('%s (%s)'):format(title, known)
  end
  block.card_row = #block.lines
  add(block, ('%s %s'):format(head, title))
  local function paint(from, to, group)
    table.insert(block.marks, { row = block.card_row, column = from, options = { end_col = to, hl_group = group } })
  end
  paint(#mark + 1, #head, state_groups[call.state])
  paint(#head + 1, #head + 1 + #title:match('^%S*'), 'KodeTool')
  if not options.linear and known ~= '' then
    local virtual = { virt_text = { { '  ' .. known, 'KodeMeta' } }, virt_text_pos = 'eol' }
    table.insert(block.marks, { row = block.card_row, column = 0, options = virtual })
  end
end

function bodies.toolCall(item, options)
  local block, call = agent_block(options), item.body --[[@as kode.ToolCall]]
  add_card_line(block, call, options)
  if options.subagent and options.subagent.running and options.subagent.last then
    add(block, '  ' .. M.line(options.subagent.last), 'KodeMeta')
  end
  if not options.expanded then
    return block
  end
  local text = (unified(call) or options.output or call.display):gsub('\n+$', '')
  local lines = text == '' and {} or M.lines(text)
  local is_diff = M.has_diff(call)
  for number, output in ipairs(lines) do
    if number > options.card_lines then
      local rest = M.count(#lines - options.card_lines, 'more line')
      add(block, ('  │ … %s: K shows all'):format(rest), 'KodeMeta')
      break
    end
    add(block, '  │ ' .. output, is_diff and M.diff_group(output) or 'KodeOutput')
  end
  return block
end

function bodies.command(item)
  local block, body = new_block(), item.body --[[@as kode.CommandOutput]]
  block.heading = true
  add(block, vim.trim(('## /%s %s'):format(M.line(body.name), M.line(body.arguments))), 'KodeUser')
  for _, line in ipairs(M.lines(body.text)) do
    add(block, line, body.failed and 'KodeNoticeError' or nil)
  end
  return block
end

function bodies.notice(item)
  local block, body = new_block(), item.body --[[@as kode.Notice]]
  local group = ({ info = 'KodeNoticeInfo', warning = 'KodeNoticeWarning', error = 'KodeNoticeError' })[body.level]
  for number, line in ipairs(M.lines(body.text)) do
    add(block, (number == 1 and '! ' or '  ') .. line, group)
  end
  if body.hint then
    add(block, '  ' .. M.line(body.hint), 'KodeMeta')
  end
  return block
end

--- Tools whose result is an answer of the user's, to be read later.
local answered = { AskUserQuestion = true, ExitPlanMode = true }

--- Whether an item is open until the user closes it: failures, refusals with their reason, and the user's own answers.
---@param item kode.Item
---@return boolean
function M.opens_itself(item)
  local call = item.body
  return call.type == 'toolCall'
    and (call.state == 'FAILED' or call.state == 'DENIED' or (answered[call.name] and call.endedAt ~= nil))
end

--- Whether an item can be opened and closed.
---@param item kode.Item
---@return boolean
function M.is_card(item)
  return item.body.type == 'toolCall' or item.body.type == 'thinking'
end

---@param item kode.Item
---@param options kode.RenderOptions
---@return kode.Block
function M.item(item, options)
  local body = bodies[item.body.type]
  if body then
    return body(item, options)
  end
  local block = new_block()
  add(block, ('! unknown item `%s`; update the plugin'):format(M.line(tostring(item.body.type))), 'KodeMeta')
  return block
end

return M
