--- Choosing an answer to a prompt, and changing the queue.
---
--- Rule: a picker has the order of answers that the transcript has, a title of one line, and the text to judge as its
--- preview. Leaving it does nothing.

local permission = require('kode.permission')
local picker = require('kode.picker')
local render = require('kode.render')
local scratch = require('kode.scratch')

local M = {}

local line = render.line

--- Lets the user choose one of several items.
---@param items any[]
---@param prompt string One line.
---@param format fun(item: any): string
---@param choose fun(item: any)
local function select(items, prompt, format, choose)
  picker.open({ title = prompt, items = items, format = format, choose = choose })
end
M.select = select

---@param lines kode.StyledLine[]
---@return string[]
local function texts(lines)
  return vim.tbl_map(function(styled)
    return styled.text
  end, lines)
end

--- Answers a permission prompt: the oldest that waits, when none is named.
---@param surface kode.Surface
---@param prompt? kode.PermissionPrompt
function M.permission(surface, prompt)
  prompt = prompt or surface.session.permissions[1]
  if not prompt then
    return vim.notify('kode: no permission is asked', vim.log.levels.INFO)
  end
  local about = texts(vim.list_extend(permission.risks(prompt), permission.body(prompt)))
  picker.open({
    title = permission.question(prompt),
    items = permission.choices(prompt),
    format = permission.describe,
    about = { lines = about, filetype = prompt.preview.type == 'diff' and 'diff' or nil },
    choose = function(choice)
      choice.act(surface)
    end,
  })
end

---@param inquiry kode.Inquiry
---@param chosen string[]
---@param callback fun(answer: kode.QuestionAnswer)
local function inquire(inquiry, chosen, callback)
  local entries = {}
  for _, option in ipairs(inquiry.options) do
    entries[#entries + 1] = { option = option, is_chosen = vim.tbl_contains(chosen, option.label) }
  end
  entries[#entries + 1] = { words = true }
  if inquiry.multiSelect and #chosen > 0 then
    entries[#entries + 1] = { done = true }
  end
  select(entries, line(inquiry.question), function(entry)
    if entry.done then
      return 'Done'
    elseif entry.words then
      return 'Answer in your own words …'
    end
    local mark = inquiry.multiSelect and (entry.is_chosen and '[x] ' or '[ ] ') or ''
    local detail = entry.option.description ~= '' and ': ' .. line(entry.option.description) or ''
    return mark .. line(entry.option.label) .. detail
  end, function(entry)
    if entry.done then
      return callback({ labels = chosen })
    elseif entry.words then
      return vim.ui.input({ prompt = line(inquiry.question) .. ' ' }, function(words)
        if words and words ~= '' then
          callback({ labels = #chosen > 0 and chosen or nil, text = words })
        end
      end)
    elseif not inquiry.multiSelect then
      return callback({ labels = { entry.option.label } })
    end
    local now = vim.tbl_filter(function(label)
      return label ~= entry.option.label
    end, chosen)
    if not entry.is_chosen then
      now[#now + 1] = entry.option.label
    end
    inquire(inquiry, now, callback)
  end)
end

--- Answers the inquiries of a question one after the other.
---@param surface kode.Surface
---@param question kode.Question
function M.inquiries(surface, question)
  local answers = {}
  local function next_inquiry()
    local inquiry = question.questions[#answers + 1]
    if not inquiry then
      return surface:answer(question, answers)
    end
    inquire(inquiry, {}, function(answer)
      answers[#answers + 1] = answer
      next_inquiry()
    end)
  end
  next_inquiry()
end

--- Answers a question in the user's own words.
---@param surface kode.Surface
---@param question kode.Question
function M.own_words(surface, question)
  vim.ui.input({ prompt = line(question.questions[1].question) .. ' ' }, function(text)
    if text and text ~= '' then
      surface:answer(question, { { text = text } })
    end
  end)
end

--- Answers a question: the oldest that waits, when none is named.
---@param surface kode.Surface
---@param question? kode.Question
function M.question(surface, question)
  question = question or surface.session.questions[1]
  if not question then
    return vim.notify('kode: no question waits', vim.log.levels.INFO)
  end
  local pending = require('kode.pending')
  if not pending.is_simple(question) then
    return M.inquiries(surface, question)
  end
  local body = texts(pending.question_body(question))
  picker.open({
    title = render.shorten(line(question.questions[1].question), 60),
    items = pending.question_choices(question),
    format = permission.describe,
    about = #body > 0 and { lines = body, filetype = 'markdown' } or nil,
    choose = function(choice)
      choice.act(surface)
    end,
  })
end

--- Opens a plan in a buffer; `:w` accepts it as it then is.
---@param surface kode.Surface
---@param question kode.Question
function M.plan(surface, question)
  local accepts = question.questions[1].options[2]
  if not accepts then
    return vim.notify('kode: this plan cannot be accepted', vim.log.levels.ERROR)
  end
  local bufnr = scratch.editor('plan', vim.split(question.plan or '', '\n', { plain = true }), function(text)
    surface:answer(question, { { labels = { accepts.label } } }, { plan = text })
  end)
  vim.bo[bufnr].filetype = 'markdown'
  vim.cmd.sbuffer(bufnr)
end

---@param surface kode.Surface
---@param op kode.QueueOp
local function queue_update(surface, op)
  surface:ask('agent/queue/update', { op = op })
end

--- Opens a queued prompt in a buffer; `:w` stores the new text.
---@param surface kode.Surface
---@param prompt kode.QueuedPrompt
local function edit_queued(surface, prompt)
  local bufnr = scratch.editor('queued', vim.split(prompt.text, '\n', { plain = true }), function(text)
    queue_update(surface, { type = 'edit', queueId = prompt.queueId, text = text })
  end)
  vim.cmd.sbuffer(bufnr)
end

---@class kode.QueueEntry
---@field prompt kode.QueuedPrompt
---@field number integer Its place; 0 for one that goes to the running turn.

---@param surface kode.Surface
---@return kode.PickerAction[]
local function queue_actions(surface)
  local function action(key, label, op)
    return {
      key = key,
      label = label,
      act = function(entry)
        local full = vim.tbl_extend('force', op, { queueId = entry.prompt.queueId }) --[[@as kode.QueueOp]]
        queue_update(surface, full)
      end,
    }
  end
  return {
    {
      key = '<C-e>',
      label = 'Edit',
      act = function(entry)
        edit_queued(surface, entry.prompt)
      end,
    },
    {
      key = '<C-k>',
      label = 'Move up',
      act = function(entry)
        local before = surface.session.queue[entry.number - 1]
        if before then
          queue_update(surface, { type = 'move', queueId = entry.prompt.queueId, before = before.queueId })
        end
      end,
    },
    action('<C-j>', 'Move to the end', { type = 'move' }),
    action('<C-x>', 'Remove', { type = 'remove' }),
  }
end

--- Changes the queue.
---@param surface kode.Surface
function M.queue(surface)
  local session = surface.session
  local entries = {} ---@type kode.QueueEntry[]
  for _, prompt in ipairs(session.steering) do
    entries[#entries + 1] = { prompt = prompt, number = 0 }
  end
  for number, prompt in ipairs(session.queue) do
    entries[#entries + 1] = { prompt = prompt, number = number }
  end
  picker.open({
    title = session.paused and 'Queue, paused' or 'Queue',
    items = entries,
    format = function(entry)
      return (entry.number == 0 and 'now  ' or entry.number .. '  ') .. line(entry.prompt.text)
    end,
    preview = function(entry, show)
      show({ lines = render.lines(entry.prompt.text), filetype = 'markdown' })
    end,
    verb = 'Send now',
    choose = function(entry)
      queue_update(surface, { type = 'promote', queueId = entry.prompt.queueId })
    end,
    actions = queue_actions(surface),
  })
end

return M
