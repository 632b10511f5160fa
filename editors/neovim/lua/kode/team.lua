--- The team of a session in words: the main conversation, the sub-agents in the background, and the tasks that they share.
---
--- Rule: pure functions of the team as the server sent it; names and titles are shown as one line each.

local render = require('kode.render')

local M = {}

--- The most shared tasks below the transcript; `:Kode team` shows all.
local MAX_TASKS = 5

---@type table<kode.TeamMemberState, string>
local states = {
  working = 'works',
  permission = 'waits for your permission',
  question = 'waits for your answer',
  idle = 'waits for your prompt',
  ended = 'has ended',
}

---@param member kode.TeamMember
---@return string
local function state_of(member)
  if member.state == 'waiting' then
    return 'waits for ' .. (member.waitsFor and render.line(member.waitsFor) or 'any message')
  end
  return states[member.state] or member.state
end

---@param member kode.TeamMember
---@return boolean
local function is_at_work(member)
  return member.agentId ~= nil and member.state ~= 'ended'
end

---@param members kode.TeamMember[]
---@return string[]
local function member_lines(members)
  local width = 0
  for _, member in ipairs(members) do
    width = math.max(width, #member.name)
  end
  return vim.tbl_map(function(member)
    local unread = member.unread > 0 and (', %d unread'):format(member.unread) or ''
    return ('%-' .. width .. 's  %s%s'):format(render.line(member.name), state_of(member), unread)
  end, members)
end

---@param task kode.TeamTask
---@return string
local function task_line(task)
  local about, blockers = 'free', task.blockedBy or {}
  if task.owner then
    about = render.line(task.owner)
  elseif #blockers > 0 then
    about = 'after ' .. table.concat(blockers, ', ')
  end
  local marks = { open = '[ ]', claimed = '[~]', completed = '[x]' }
  return ('%s %d. %s (%s)'):format(marks[task.state] or '[?]', task.number, render.line(task.title), about)
end

--- The names of the sub-agents that a message can be sent to.
---@param team? kode.Team
---@return string[]
function M.names(team)
  local names = {} ---@type string[]
  for _, member in ipairs(team and team.members or {}) do
    if is_at_work(member) then
      names[#names + 1] = member.name
    end
  end
  return names
end

--- The whole team.
---@param team? kode.Team
---@return string[]
function M.lines(team)
  if not team then
    return { 'No sub-agent has worked in the background.' }
  end
  local lines = member_lines(team.members)
  for number, member in ipairs(team.members) do
    if member.description then
      lines[number] = ('%s  (%s)'):format(lines[number], render.line(member.description))
    end
  end
  if team.tasks and #team.tasks > 0 then
    vim.list_extend(lines, { '', 'Shared tasks' })
    vim.list_extend(lines, vim.tbl_map(task_line, team.tasks))
  end
  return lines
end

--- The title and the lines below the transcript; nil unless a sub-agent works or a task is open.
---@param team? kode.Team
---@return string? title
---@return string[] lines
function M.short(team)
  local names = M.names(team)
  local open = vim.tbl_filter(function(task)
    return task.state ~= 'completed'
  end, team and team.tasks or {})
  if not team or (#names == 0 and #open == 0) then
    return nil, {}
  end
  local lines = member_lines(vim.tbl_filter(function(member)
    return member.state ~= 'ended'
  end, team.members))
  for number = 1, math.min(MAX_TASKS, #open) do
    lines[#lines + 1] = task_line(open[number])
  end
  if #open > MAX_TASKS then
    lines[#lines + 1] = ('… %d more'):format(#open - MAX_TASKS)
  end
  return ('## Team: %s (:Kode team)'):format(render.count(#names, 'sub-agent')), lines
end

--- Sends a message of the user to a sub-agent.
---@param surface kode.Surface
---@param to string
---@param text string
function M.send(surface, to, text)
  surface:ask('agent/team/send', { to = to, text = text }, function(result)
    vim.notify(('kode: sent to %s'):format(table.concat(result.to, ', ')), vim.log.levels.INFO)
  end)
end

return M
