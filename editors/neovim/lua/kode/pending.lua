--- What stands below the transcript: prompts that wait for the user, and prompts of the user that wait.
---
--- Rule: pure functions of the state; what is asked is shown whole or said to be cut, and the harmful answer is never the
--- one that a stray key gives: keys count only where `kode.transcript` says so.

local render = require('kode.render')

---@class kode.Choice
---@field key string The key that chooses it.
---@field label string
---@field detail? string
---@field act fun(surface: kode.Surface)

---@class kode.Footer: kode.Block
---@field id string
---@field choices kode.Choice[]

local M = {}

--- Lines of what is asked that are shown; `K` shows all of them.
local MAX_LINES = 120

local scope_labels = {
  once = 'Allow once',
  session = 'Allow for this session',
  project = 'Always allow in this project',
  user = 'Always allow everywhere',
}

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
local function add_choices(footer)
  for _, choice in ipairs(footer.choices) do
    local line = ('  %s  %s'):format(choice.key, render.line(choice.label))
    footer.lines[#footer.lines + 1] = line
    footer.marks[#footer.marks + 1] =
      { row = #footer.lines - 1, column = 2, options = { end_col = 3, hl_group = 'KodeKey' } }
    if choice.detail and choice.detail ~= '' then
      add(footer, '     ' .. render.line(choice.detail), 'KodeMeta')
    end
  end
end

---@param id string
---@return kode.Footer
local function new_footer(id)
  return { id = id, lines = { '' }, marks = {}, choices = {} }
end

---@param offer? kode.Offer
---@return string?
local function offer_line(offer)
  if not offer then
    return nil
  end
  local text = table.concat(offer.rules, ', ')
  if offer.spared then
    text = ('%s; would have spared you %d of the last %d'):format(text, offer.spared.matched, offer.spared.of)
  end
  return text
end

--- The answers to a permission prompt, in the order in which they are shown.
---@param prompt kode.PermissionPrompt
---@return kode.Choice[]
function M.permission_choices(prompt)
  local choices = {}
  local offers = {}
  for _, offer in ipairs(prompt.offers or {}) do
    offers[offer.scope] = offer
  end
  for _, scope in ipairs(prompt.scopes) do
    choices[#choices + 1] = {
      key = tostring(#choices + 1),
      label = scope_labels[scope] or scope,
      detail = offer_line(offers[scope]),
      act = function(surface)
        surface:respond(prompt, { decision = 'allow', scope = scope })
      end,
    }
  end
  choices[#choices + 1] = {
    key = tostring(#choices + 1),
    label = 'Deny',
    act = function(surface)
      surface:respond(prompt, { decision = 'deny' })
    end,
  }
  choices[#choices + 1] = {
    key = tostring(#choices + 1),
    label = 'Deny and say what to do instead',
    act = function(surface)
      surface:deny_with_words(prompt)
    end,
  }
  if prompt.preview.type == 'diff' then
    choices[#choices + 1] = {
      key = tostring(#choices + 1),
      label = 'Look at it as a diff, and change it there',
      act = function(surface)
        require('kode.diff').proposal(surface, prompt)
      end,
    }
  end
  return choices
end

--- What is asked, in lines.
---@param prompt kode.PermissionPrompt
---@return string[]
function M.permission_lines(prompt)
  local preview = prompt.preview
  local text = prompt.text
  if not text or text == '' then
    local shown = preview.type == 'command' and ('%s\nin %s'):format(preview.command, preview.cwd)
      or preview.type == 'diff' and preview.unified
      or preview.type == 'paths' and table.concat(preview.paths or {}, '\n')
      or vim.inspect(prompt.input)
    text = table.concat({ prompt.title, shown, prompt.reason }, '\n')
  end
  return render.lines((text:gsub('\n+$', '')))
end

---@param prompt kode.PermissionPrompt
---@param number integer
---@param of integer
---@return kode.Footer
local function permission(prompt, number, of)
  local footer = new_footer(prompt.permissionId)
  local count = of > 1 and (' (%d of %d)'):format(number, of) or ''
  add(footer, ('## ? Kode asks: %s%s'):format(render.line(prompt.title), count), 'KodePermission')
  local is_diff = prompt.preview.type == 'diff'
  local lines = M.permission_lines(prompt)
  for place, line in ipairs(lines) do
    if place > MAX_LINES then
      add(footer, ('  … %d more lines: K shows all'):format(#lines - MAX_LINES), 'KodeMeta')
      break
    end
    add(footer, '  ' .. line, is_diff and render.diff_group(line) or nil)
  end
  for _, risk in ipairs(prompt.risks) do
    add(footer, '  ! ' .. render.line(risk), 'KodeRisk')
  end
  footer.choices = M.permission_choices(prompt)
  add_choices(footer)
  return footer
end

---@param question kode.Question
---@return kode.Footer
local function asked(question)
  local footer = new_footer(question.questionId)
  add(footer, question.plan and '## ? Kode has a plan' or '## ? Kode has a question', 'KodeQuestion')
  for _, line in ipairs(question.plan and render.lines(question.plan) or {}) do
    add(footer, line)
  end
  for number, candidate in ipairs(question.candidates or {}) do
    add(footer, ('### Answer %s'):format(string.char(64 + number)), 'KodeTitle')
    for _, line in ipairs(render.lines(candidate.text)) do
      add(footer, line)
    end
    for _, call in ipairs(candidate.calls) do
      add(footer, ('  would call %s %s'):format(call.name, render.line(vim.json.encode(call.input))), 'KodeMeta')
    end
  end
  for _, inquiry in ipairs(question.questions) do
    add(footer, render.line(inquiry.question), 'KodeQuestion')
  end
  local first = question.questions[1]
  if #question.questions == 1 and not first.multiSelect then
    for number, option in ipairs(first.options) do
      footer.choices[number] = {
        key = tostring(number),
        label = option.label,
        detail = option.description,
        act = function(surface)
          surface:answer(question, { { labels = { option.label } } })
        end,
      }
    end
  end
  local function choice(label, act)
    local number = #footer.choices + 1
    if number <= 9 then
      footer.choices[number] = { key = tostring(number), label = label, act = act }
    end
  end
  if question.kind ~= 'turnLimit' then
    choice(#footer.choices == 0 and 'Answer …' or 'Answer in your own words …', function(surface)
      require('kode.pick').question(surface, question)
    end)
  end
  if question.plan then
    choice('Change the plan and accept it …', function(surface)
      require('kode.pick').plan(surface, question)
    end)
  end
  choice('Do not answer', function(surface)
    surface:answer(question, nil)
  end)
  add_choices(footer)
  return footer
end

---@param session kode.Session
---@return kode.Footer
local function queue(session)
  local footer = new_footer('queue')
  add(footer, session.paused and '## Waiting until you go on (:Kode queue)' or '## Waiting', 'KodeQueue')
  for _, prompt in ipairs(session.steering) do
    add(footer, '  now   ' .. render.line(prompt.text), 'KodeQueue')
  end
  for number, prompt in ipairs(session.queue) do
    add(footer, ('  %-4d  %s'):format(number, render.line(prompt.text)), 'KodeQueue')
  end
  return footer
end

--- All that stands below the transcript.
---@param session kode.Session
---@return kode.Footer[]
function M.footers(session)
  local footers = {}
  for number, prompt in ipairs(session.permissions) do
    footers[#footers + 1] = permission(prompt, number, #session.permissions)
  end
  for _, question in ipairs(session.questions) do
    footers[#footers + 1] = asked(question)
  end
  if #session.queue + #session.steering > 0 then
    footers[#footers + 1] = queue(session)
  end
  return footers
end

return M
