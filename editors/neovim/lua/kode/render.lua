--- Items of the transcript as lines and marks.
---
--- Rule: pure functions of what they are given. Texts are shown as they are and never read as commands, maps or links;
--- a block begins with an empty line, so that a streaming text grows at its very end.

---@class kode.Mark
---@field row integer The line in the block, from 0.
---@field column integer The byte in the line.
---@field options vim.api.keyset.set_extmark

---@class kode.Block
---@field lines string[]
---@field marks kode.Mark[]
---@field heading? boolean Whether `]]` stops here.
---@field grows? boolean Whether text that comes is put at its end.

---@class kode.RenderOptions
---@field expanded boolean
---@field linear boolean
---@field ascii boolean
---@field card_lines integer
---@field output? string What the call has put out, as far as it is known.
---@field subagent? kode.SubagentState

local M = {}

local signs = {
  closed = { '▸', '>' },
  open = { '▾', 'v' },
  PENDING = { '○', 'waits' },
  APPROVAL_REQUIRED = { '?', 'asks' },
  EXECUTING = { '●', 'runs' },
  COMPLETED = { '✓', 'done' },
  FAILED = { '✗', 'failed' },
  DENIED = { '⊘', 'denied' },
  SEALED = { '⊘', 'cut off' },
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

--- The lines of a text, without carriage returns at their ends.
---@param text string
---@return string[]
function M.lines(text)
  return vim.split((text:gsub('\r\n', '\n')), '\n', { plain = true })
end

---@param timestamp? string
---@return number?
local function seconds(timestamp)
  if not timestamp then
    return nil
  end
  local hour, minute, second = timestamp:match('T(%d+):(%d+):([%d.]+)')
  return hour and hour * 3600 + minute * 60 + tonumber(second) or nil
end

--- How long it took, in words.
---@param from? string
---@param to? string
---@return string?
function M.duration(from, to)
  local first, last = seconds(from), seconds(to)
  if not first or not last then
    return nil
  end
  local took = (last - first) % 86400
  if took < 1 then
    return ('%d ms'):format(took * 1000)
  elseif took < 60 then
    return ('%.1f s'):format(took)
  end
  return ('%d min %d s'):format(took / 60, took % 60)
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

--- What the editor shows goes with every prompt.
---@param attachment kode.Attachment
---@return boolean
local function is_worth_telling(attachment)
  return attachment.kind ~= 'editor' or attachment.problem ~= nil
end

---@param attachment kode.Attachment
---@return string
local function attachment_line(attachment)
  local size = attachment.lines and ('%d lines'):format(attachment.lines) or ('%d bytes'):format(attachment.bytes)
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
  for _, attachment in ipairs(vim.tbl_filter(is_worth_telling, body.attachments or {})) do
    add(block, attachment_line(attachment), attachment.problem and 'KodeNoticeWarning' or 'KodeMeta')
  end
  return block
end

function bodies.agentMessage(item)
  local block, body = new_block(), item.body --[[@as kode.AgentMessage]]
  block.heading = true
  block.grows = not body.complete
  add(block, '## Kode', 'KodeAgent')
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
      add(block, '(broke off)', 'KodeNoticeWarning')
    end
  end
  return block
end

function bodies.thinking(item, options)
  local block, body = new_block(), item.body --[[@as kode.Thinking]]
  local mark = sign(options.expanded and 'open' or 'closed', options.ascii)
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
---@return string[]
local function facts(call, options)
  local list = {}
  local structured = type(call.structured) == 'table' and call.structured or {}
  local diff = unified(call)
  if diff then
    list[#list + 1] = ('+%d -%d'):format(M.counts(diff))
  end
  local code = structured.exitCode or structured.exit_code
  if type(code) == 'number' then
    list[#list + 1] = ('exit %d'):format(code)
  end
  list[#list + 1] = M.duration(call.startedAt, call.endedAt)
  local agent = options.subagent
  if agent then
    list[#list + 1] = ('%s, %d calls'):format(agent.type, agent.calls)
  end
  return list
end

function bodies.toolCall(item, options)
  local block, call = new_block(), item.body --[[@as kode.ToolCall]]
  local mark = sign(options.expanded and 'open' or 'closed', options.ascii)
  local title = M.line(call.title ~= '' and call.title or call.name)
  local state = sign(call.state, options.ascii or options.linear)
  local told = table.concat(facts(call, options), ', ')
  local head = ('%s %s'):format(mark, state)
  if options.linear and told ~= '' then
    title = ('%s (%s)'):format(title, told)
  end
  add(block, ('%s %s'):format(head, title))
  local function paint(from, to, group)
    table.insert(block.marks, { row = 1, column = from, options = { end_col = to, hl_group = group } })
  end
  paint(#mark + 1, #head, state_groups[call.state])
  paint(#head + 1, #head + 1 + #title:match('^%S*'), 'KodeTool')
  if not options.linear and told ~= '' then
    local virtual = { virt_text = { { '  ' .. told, 'KodeMeta' } }, virt_text_pos = 'eol' }
    table.insert(block.marks, { row = 1, column = 0, options = virtual })
  end
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
      add(block, ('  │ … %d more lines: K shows all'):format(#lines - options.card_lines), 'KodeMeta')
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

--- Whether an item is shown open when the user has not said so.
---@param item kode.Item
---@return boolean
function M.opens_itself(item)
  return item.body.type == 'toolCall' and item.body.state == 'FAILED'
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
  add(block, ('! an item of the unknown kind `%s`'):format(M.line(tostring(item.body.type))), 'KodeMeta')
  return block
end

return M
