--- A permission prompt: its title, its answers, and what exactly would be approved.
---
--- Rule: pure functions. The answers have one order wherever they are shown: Deny is always 1, Allow once is always 2, and
--- every later number grants a permanent permission. A learned number therefore never grants more than it did before.

local render = require('kode.render')

---@class kode.Choice
---@field key string The key that gives this answer while the cursor is on the prompt.
---@field label string
---@field detail? string What the answer covers beyond this call.
---@field note? string Details about it, for lists that have room.
---@field act fun(surface: kode.Surface)

---@class kode.StyledLine
---@field text string
---@field group? string A highlight group.

local M = {}

---@type table<kode.Scope, string>
local labels = {
  once = 'Allow once',
  session = 'Allow for this session',
  project = 'Always allow in this project',
  user = 'Always allow everywhere',
}

--- The scopes of answers that stand, in their order.
---@type kode.Scope[]
local STANDING = { 'session', 'project', 'user' }

--- The rules that an answer would save, on one line, and how many calls of this session they would have answered.
---@param prompt kode.PermissionPrompt
---@param scope kode.Scope
---@return string? rules
---@return string? note
local function rules(prompt, scope)
  for _, offer in ipairs(prompt.offers or {}) do
    if offer.scope == scope then
      local spared, note = offer.spared, nil ---@type kode.RuleCoverage?, string?
      if spared and spared.of > 0 then
        note = ('would have answered %d of the last %d'):format(spared.matched, spared.of)
      end
      return render.exact_line(table.concat(offer.rules, ', ')), note
    end
  end
end

--- An answer with all that is known about it, on one line.
---@param choice kode.Choice
---@return string
function M.describe(choice)
  local text = choice.label
  if choice.detail and choice.detail ~= '' then
    text = ('%s: %s'):format(text, render.line(choice.detail))
  end
  return choice.note and ('%s (%s)'):format(text, choice.note) or text
end

--- The answers to a permission prompt, in the order in which every list shows them.
---@param prompt kode.PermissionPrompt
---@return kode.Choice[]
function M.choices(prompt)
  local choices = {} ---@type kode.Choice[]
  local function add(label, act, key)
    local choice = { key = key or tostring(#choices + 1), label = label, act = act } ---@type kode.Choice
    choices[#choices + 1] = choice
    return choice
  end
  add('Deny', function(surface)
    surface:respond(prompt, { decision = 'deny' })
  end)
  add(labels.once, function(surface)
    surface:respond(prompt, { decision = 'allow', scope = 'once' })
  end)
  for _, scope in ipairs(STANDING) do
    if vim.list_contains(prompt.scopes, scope) then
      local choice = add(labels[scope], function(surface)
        surface:respond(prompt, { decision = 'allow', scope = scope })
      end)
      choice.detail, choice.note = rules(prompt, scope)
    end
    if scope == 'session' and prompt.mode then
      local choice = add('Allow all edits for this session', function(surface)
        surface:respond(prompt, { decision = 'allow', scope = 'once', mode = prompt.mode })
      end)
      choice.detail = 'mode ' .. prompt.mode
    end
  end
  add('Deny and say why', function(surface)
    surface:deny_with_feedback(prompt)
  end, 'gw')
  if prompt.preview.type == 'diff' then
    add('Open as a diff, to change it', function(surface)
      require('kode.diff').proposal(surface, prompt)
    end, 'gf')
  end
  return choices
end

--- The question in one line, for the title of a picker.
---@param prompt kode.PermissionPrompt
---@return string
function M.question(prompt)
  return render.shorten(render.exact_line(prompt.title), 60) .. '?'
end

--- The risks, the worst first.
---@param prompt kode.PermissionPrompt
---@return kode.StyledLine[]
function M.risks(prompt)
  local lines = {}
  for _, risk in ipairs(prompt.risks) do
    lines[#lines + 1] = { text = '! ' .. render.exact_line(risk), group = 'KodeRisk' }
  end
  return lines
end

---@param prompt kode.PermissionPrompt
---@return kode.StyledLine[]
local function subject(prompt)
  local preview, lines = prompt.preview --[[@as any]], {} ---@type any, kode.StyledLine[]
  local function add(text, group)
    lines[#lines + 1] = { text = text, group = group }
  end
  if preview.type == 'command' then
    for _, line in ipairs(render.lines(preview.command)) do
      add('$ ' .. render.exact_line(line))
    end
    add('in ' .. render.exact_line(preview.cwd), 'KodeMeta')
  elseif preview.type == 'diff' then
    for _, line in ipairs(render.lines((preview.unified:gsub('\n+$', '')))) do
      add(render.exact_line(line), render.diff_group(line))
    end
  elseif preview.type == 'paths' then
    for _, path in ipairs(preview.paths) do
      add(render.exact_line(path))
    end
  else
    -- A server newer than this client.
    for _, line in ipairs(render.lines(prompt.text or vim.inspect(prompt.input))) do
      add(render.exact_line(line))
    end
  end
  return lines
end

--- The request: the exact command, diff or paths, the reason for asking, and the limits of the call.
---@param prompt kode.PermissionPrompt
---@return kode.StyledLine[]
function M.body(prompt)
  local lines = subject(prompt)
  lines[#lines + 1] = { text = 'Reason: ' .. render.exact_line(prompt.reason), group = 'KodeMeta' }
  for _, note in ipairs(prompt.notes or {}) do
    lines[#lines + 1] = { text = render.exact_line(note), group = 'KodeMeta' }
  end
  local diagnostics = prompt.diagnostics
  if diagnostics then
    lines[#lines + 1] = { text = ('This change %s.'):format(render.exact_line(diagnostics.summary)), group = 'KodeMeta' }
    for _, line in ipairs(diagnostics.lines) do
      lines[#lines + 1] = { text = '  ' .. render.exact_line(line), group = 'KodeMeta' }
    end
  end
  return lines
end

--- Everything about a prompt, for a window of its own: title, risks, body, and the rules behind each answer.
---@param prompt kode.PermissionPrompt
---@return kode.StyledLine[]
function M.whole(prompt)
  local lines = { { text = render.exact_line(prompt.title), group = 'KodePermission' } } ---@type kode.StyledLine[]
  vim.list_extend(lines, M.risks(prompt))
  lines[#lines + 1] = { text = '' }
  vim.list_extend(lines, M.body(prompt))
  lines[#lines + 1] = { text = '' }
  for _, choice in ipairs(M.choices(prompt)) do
    lines[#lines + 1] = { text = ('%-2s %s'):format(choice.key, M.describe(choice)) }
  end
  return lines
end

return M
