--- The part below the transcript: the goal, todos, the team, prompts that wait for the user, and queued prompts.
---
--- Rule: pure functions of the state and of the room in the window. Title and answers of the oldest prompt are always whole;
--- its body gets the lines that are left, and a cut names the number of lines left out.

local permission = require('kode.permission')
local render = require('kode.render')

---@class kode.Footer: kode.Block
---@field id string
---@field choices kode.Choice[]
---@field rows table<integer, kode.Choice> The answers by their row in the footer, from 0.

---@class kode.Room The smallest window that shows the transcript.
---@field width integer
---@field height integer

local M = {}

--- Room to assume while no window shows the transcript.
---@type kode.Room
M.ROOM = { width = 80, height = 40 }

--- Lines of a body that are drawn however much room there is; `K` shows the rest.
local MAX_BODY = 120
--- Todos that are shown.
local MAX_TODOS = 6
--- Queued prompts that are shown while something waits for the user.
local MAX_QUEUED = 3

---@param id string
---@return kode.Footer
local function new_footer(id)
  return { id = id, lines = { '' }, marks = {}, choices = {}, rows = {} }
end

---@param footer kode.Footer
---@param text string
---@param group? string
local function add(footer, text, group)
  footer.lines[#footer.lines + 1] = text
  if group then
    footer.marks[#footer.marks + 1] =
      { row = #footer.lines - 1, column = 0, options = { end_col = #text, hl_group = group } }
  end
end

---@param footer kode.Footer
---@param lines kode.StyledLine[]
---@param indent string
local function add_lines(footer, lines, indent)
  for _, line in ipairs(lines) do
    add(footer, line.text == '' and '' or indent .. line.text, line.group)
  end
end

--- Where the detail of an answer is drawn: behind it, cut at the edge of the window; as part of its line, for screen
--- readers; or on a line of its own.
---@alias kode.DetailPlace "behind"|"within"|"below"

---@param footer kode.Footer
---@param choices kode.Choice[]
---@param place kode.DetailPlace
local function add_choices(footer, choices, place)
  footer.choices = choices
  for _, choice in ipairs(choices) do
    local detail = choice.detail and choice.detail ~= '' and render.line(choice.detail) or nil
    local line = ('  %-2s %s'):format(choice.key, render.line(choice.label))
    if detail and place == 'within' then
      line = ('%s: %s'):format(line, detail)
    end
    footer.lines[#footer.lines + 1] = line
    local row = #footer.lines - 1
    footer.rows[row] = choice
    footer.marks[#footer.marks + 1] =
      { row = row, column = 2, options = { end_col = 2 + #choice.key, hl_group = 'KodeKey' } }
    if detail and place == 'behind' then
      local virtual = { virt_text = { { '  ' .. detail, 'KodeMeta' } }, virt_text_pos = 'eol' }
      footer.marks[#footer.marks + 1] = { row = row, column = 0, options = virtual }
    elseif detail and place == 'below' then
      add(footer, '     ' .. detail, 'KodeMeta')
    end
  end
end

---@param footer kode.Footer
---@param width integer
---@return integer
local function rows_of(footer, width)
  local rows = 0
  for _, line in ipairs(footer.lines) do
    rows = rows + render.rows(line, width)
  end
  return rows
end

--- Both ends of a line that does not fit into some rows.
---@param line kode.StyledLine
---@param room kode.Room
---@return kode.StyledLine
local function both_ends(line, room)
  -- Lines wrap at words, so the last row is not filled.
  local cells = math.max(math.floor(room.width * (room.height - 0.5)), 1)
  return { text = render.shorten(line.text, cells), group = line.group }
end

--- The beginning of a body that fits, and a line that names the rest.
---@param lines kode.StyledLine[]
---@param room kode.Room The rest of the window.
---@return kode.StyledLine[]
local function cut(lines, room)
  local rows, kept = {}, 0 ---@type integer[], integer
  local total = 0
  for number, line in ipairs(lines) do
    rows[number] = render.rows('  ' .. line.text, room.width)
    total = total + rows[number]
  end
  if #lines <= MAX_BODY and total <= room.height then
    return lines
  end
  -- The line that names the rest takes a row.
  local left = math.max(room.height - 1, 1) --[[@as integer]]
  for number = 1, math.min(#lines, MAX_BODY) do
    left = left - assert(rows[number])
    if left < 0 then
      break
    end
    kept = number
  end
  local shown = vim.list_slice(lines, 1, kept)
  if kept == 0 and lines[1] then
    shown[1] = both_ends(lines[1], { width = room.width - 2, height = math.max(room.height - 1, 1) })
    kept = 1
  end
  if kept < #lines or #shown[1].text ~= #lines[1].text then
    local rest = kept < #lines and render.count(#lines - kept, 'more line') or 'cut'
    shown[#shown + 1] = { text = ('… %s: K shows all'):format(rest), group = 'KodeMeta' }
  end
  return shown
end

---@class kode.FooterContext
---@field room kode.Room
---@field linear boolean

---@param footer kode.Footer
---@param body kode.StyledLine[]
---@param context kode.FooterContext
---@param indent string
local function add_body(footer, body, context, indent)
  local left = context.room.height - rows_of(footer, context.room.width)
  add_lines(footer, cut(body, { width = context.room.width, height = left }), indent)
end

---@param prompt kode.PermissionPrompt
---@param count string
---@param context kode.FooterContext
---@return kode.Footer
local function asks_permission(prompt, count, context)
  local footer = new_footer(prompt.permissionId)
  local title = render.exact_line(prompt.title)
  -- A command is in the body, exactly; the answers need the rows.
  if prompt.preview.type == 'command' then
    title = render.shorten(title, math.max(context.room.width - #count - 6, 20))
  end
  add(footer, ('## ? %s%s'):format(title, count), 'KodePermission')
  add_lines(footer, permission.risks(prompt), '  ')
  add_choices(footer, permission.choices(prompt), context.linear and 'within' or 'behind')
  add_body(footer, permission.body(prompt), context, '  ')
  return footer
end

--- Whether one key answers a question: it asks one thing and takes one option.
---@param question kode.Question
---@return boolean
function M.is_simple(question)
  return #question.questions == 1 and not question.questions[1].multiSelect
end

--- The answers to a question, in the order in which every list shows them.
---@param question kode.Question
---@return kode.Choice[]
function M.question_choices(question)
  local choices = {} ---@type kode.Choice[]
  local function add_choice(label, act, detail)
    if #choices < 9 then
      choices[#choices + 1] = { key = tostring(#choices + 1), label = label, detail = detail, act = act }
    end
  end
  if not M.is_simple(question) then
    add_choice('Answer …', function(surface)
      require('kode.pick').inquiries(surface, question)
    end)
  else
    for _, option in ipairs(question.questions[1].options) do
      add_choice(option.label, function(surface)
        surface:answer(question, { { labels = { option.label } } })
      end, option.description)
    end
    if question.kind ~= 'turnLimit' and question.kind ~= 'rest' then
      add_choice('Answer in your own words …', function(surface)
        require('kode.pick').own_words(surface, question)
      end)
    end
  end
  if question.plan then
    add_choice('Change the plan and accept it …', function(surface)
      require('kode.pick').plan(surface, question)
    end)
  end
  add_choice('Do not answer', function(surface)
    surface:answer(question, nil)
  end)
  return choices
end

--- The text that a question is about: the plan, or the answers to choose from.
---@param question kode.Question
---@return kode.StyledLine[]
function M.question_body(question)
  local lines = {} ---@type kode.StyledLine[]
  for _, line in ipairs(question.plan and render.lines(question.plan) or {}) do
    lines[#lines + 1] = { text = line }
  end
  for number, candidate in ipairs(question.candidates or {}) do
    lines[#lines + 1] = { text = ('### Answer %s'):format(string.char(64 + number)), group = 'KodeTitle' }
    for _, line in ipairs(render.lines(candidate.text)) do
      lines[#lines + 1] = { text = line }
    end
    for _, call in ipairs(candidate.calls) do
      local text = ('would call %s %s'):format(call.name, render.line(vim.json.encode(call.input)))
      lines[#lines + 1] = { text = text, group = 'KodeMeta' }
    end
  end
  return lines
end

---@param question kode.Question
---@return string
local function question_title(question)
  return question.plan and 'Kode has a plan' or 'Kode has a question'
end

---@param question kode.Question
---@param count string
---@param place kode.DetailPlace
---@return kode.Footer
local function question_head(question, count, place)
  local footer = new_footer(question.questionId)
  add(footer, ('## ? %s%s'):format(question_title(question), count), 'KodeQuestion')
  for _, inquiry in ipairs(question.questions) do
    add(footer, render.line(inquiry.question), 'KodeQuestion')
  end
  add_choices(footer, M.question_choices(question), place)
  return footer
end

---@param question kode.Question
---@param count string
---@param context kode.FooterContext
---@return kode.Footer
local function asks_question(question, count, context)
  local body = M.question_body(question)
  local footer = question_head(question, count, context.linear and 'within' or 'below')
  -- A body gets at least half of the window.
  local left = context.room.height - rows_of(footer, context.room.width)
  if not context.linear and left < (#body > 0 and context.room.height / 2 or 0) then
    footer = question_head(question, count, 'behind')
  end
  add_body(footer, body, context, '')
  return footer
end

--- Everything about a question, for a window of its own.
---@param question kode.Question
---@return kode.StyledLine[]
function M.whole_question(question)
  local lines = {} ---@type kode.StyledLine[]
  for _, inquiry in ipairs(question.questions) do
    lines[#lines + 1] = { text = render.line(inquiry.question), group = 'KodeQuestion' }
    for _, option in ipairs(inquiry.options) do
      local detail = option.description ~= '' and ': ' .. render.line(option.description) or ''
      lines[#lines + 1] = { text = ('- %s%s'):format(render.line(option.label), detail) }
    end
    lines[#lines + 1] = { text = '' }
  end
  return vim.list_extend(lines, M.question_body(question))
end

--- A prompt that is answered after those above it.
---@param id string
---@param title string
---@return kode.Footer
local function later(id, title)
  local footer = { id = id, lines = {}, marks = {}, choices = {}, rows = {} } ---@type kode.Footer
  add(footer, '  ? ' .. title, 'KodePermission')
  return footer
end

---@param session kode.Session
---@param limit integer
---@return kode.Footer
local function queue(session, limit)
  local footer = new_footer('queue')
  add(footer, session.paused and '## Queue, paused (:Kode queue)' or '## Queue', 'KodeQueue')
  local left = limit
  for _, prompt in ipairs(session.steering) do
    left = left - 1
    if left >= 0 then
      add(footer, '  now   ' .. render.line(prompt.text), 'KodeQueue')
    end
  end
  for number, prompt in ipairs(session.queue) do
    left = left - 1
    if left >= 0 then
      add(footer, ('  %-4d  %s'):format(number, render.line(prompt.text)), 'KodeQueue')
    end
  end
  if left < 0 then
    add(footer, ('  … %d more'):format(-left), 'KodeMeta')
  end
  return footer
end

---@type table<string, string>
local todo_marks = { pending = '[ ]', in_progress = '[~]', completed = '[x]' }

--- The todos as lines.
---@param session kode.Session
---@return string[]
function M.todo_lines(session)
  return vim.tbl_map(function(todo)
    return ('%s %s'):format(todo_marks[todo.status] or '[?]', render.line(todo.content))
  end, session.todos)
end

---@param session kode.Session
---@return kode.Footer?
local function todos(session)
  local lines, first = M.todo_lines(session), nil ---@type string[], integer?
  for number, todo in ipairs(session.todos) do
    if not first and todo.status ~= 'completed' then
      first = number
    end
  end
  if not first then
    return nil
  end
  local footer = new_footer('todos')
  local done = #vim.tbl_filter(function(todo)
    return todo.status == 'completed'
  end, session.todos)
  add(footer, ('## To do: %d of %d done'):format(done, #lines), 'KodeQueue')
  local last = math.min(first + MAX_TODOS - 1, #lines)
  for number = first, last do
    add(footer, '  ' .. lines[number], session.todos[number].status == 'in_progress' and 'KodeToolRunning' or 'KodeQueue')
  end
  if last < #lines then
    add(footer, ('  … %d more (:Kode todos)'):format(#lines - last), 'KodeMeta')
  end
  return footer
end

---@type table<kode.GoalState, string>
local goal_ends = {
  met = 'met',
  outOfRounds = 'not met, no checks left',
  outOfMoney = 'not met, no money left',
  outOfTime = 'not met, no time left',
}

--- The goal with its progress; its newest finding is cut, the transcript has it whole.
---@param goal kode.Goal
---@param width integer
---@return kode.Footer
local function goal_footer(goal, width)
  local footer = new_footer('goal')
  local state = goal_ends[goal.state]
  add(footer, ('## Goal%s: %s'):format(state and ', ' .. state or '', render.line(goal.text)), 'KodeQueue')
  local bounds = {
    ('check %d of %d'):format(goal.rounds, goal.maxRounds),
    ('$%.2f%s'):format(goal.cost, goal.maxCost and (' of $%.2f'):format(goal.maxCost) or ''),
    require('kode.time').span(goal.durationMs / 1000) .. (goal.maxMinutes and (' of %d min'):format(goal.maxMinutes) or ''),
  }
  add(footer, '  ' .. table.concat(bounds, ', '), 'KodeMeta')
  if goal.finding then
    add(footer, '  ' .. render.shorten(render.line(goal.finding), math.max(width - 2, 20)), 'KodeMeta')
  end
  return footer
end

---@param session kode.Session
---@return kode.Footer?
local function team_footer(session)
  local title, lines = require('kode.team').short(session.team)
  if not title then
    return nil
  end
  local footer = new_footer('team')
  add(footer, title, 'KodeQueue')
  for _, line in ipairs(lines) do
    add(footer, '  ' .. line, 'KodeMeta')
  end
  return footer
end

--- Everything below the transcript. The oldest prompt is shown whole; while several wait, the others are one line each.
---@param session kode.Session
---@param room kode.Room
---@param linear? boolean
---@return kode.Footer[]
function M.footers(session, room, linear)
  local waiting = session:waiting()
  local queued = #session.queue + #session.steering
  local below = queued > 0 and queue(session, waiting > 0 and MAX_QUEUED or queued) or nil
  local footers = {} ---@type kode.Footer[]
  if waiting == 0 then
    footers[1] = session.goal and goal_footer(session.goal, room.width) or nil
    footers[#footers + 1] = todos(session)
    footers[#footers + 1] = team_footer(session)
  end
  -- The line of the cursor stays visible above.
  local taken = 1 + math.max(waiting - 1, 0) + (below and rows_of(below, room.width) or 0)
  local context = { room = { width = room.width, height = room.height - taken }, linear = linear or false }
  local count = waiting > 1 and (' (1 of %d)'):format(waiting) or ''
  for _, prompt in ipairs(session.permissions) do
    footers[#footers + 1] = #footers == 0 and asks_permission(prompt, count, context)
      or later(prompt.permissionId, render.exact_line(prompt.title))
  end
  for _, question in ipairs(session.questions) do
    footers[#footers + 1] = #footers == 0 and asks_question(question, count, context)
      or later(question.questionId, question_title(question))
  end
  footers[#footers + 1] = below
  return footers
end

return M
