--- Rounds of comments: the instruction to answer each by its number, and the answers by number.
---
--- Rule: an answer without a number is shown in the conversation alone.

local M = {}

--- The instruction below the comments of a round.
M.ENDING = 'When you are done, answer each in a paragraph of its own that begins with “Comment” and its number.'

--- Characters between a number and its answer.
local BETWEEN = { ':', '.', ')', '–', '-' }

--- The number whose answer starts on a line, whatever Markdown is around it.
---@param line string
---@return integer? number
---@return string words The rest of the line.
local function begun(line)
  local rest = line:gsub('^%s*[#%-*]*%s*%**', '', 1)
  local number, words = rest:match('^[Cc][Oo][Mm][Mm][Ee][Nn][Tt]%s+(%d+)(.*)$')
  if not words or words:find('^%w') then
    return nil, line
  end
  words = words:gsub('^%**%s*', '', 1)
  for _, sign in ipairs(BETWEEN) do
    if vim.startswith(words, sign) then
      words = words:sub(#sign + 1)
      break
    end
  end
  return math.floor(tonumber(number) or 0), (words:gsub('^%**%s*', '', 1))
end

--- The answer to each comment.
---@param text string
---@param count integer How many comments there were.
---@return table<integer, string> answers By number; none where it says nothing.
function M.answers(text, count)
  ---@type table<integer, string[]>
  local found = {}
  local current
  for _, line in ipairs(vim.split(text, '\n', { plain = true })) do
    local number, words = begun(line)
    if number and number >= 1 and number <= count then
      found[number] = found[number] or {}
      current = found[number]
      table.insert(current, words)
    elseif current then
      table.insert(current, line)
    end
  end
  local answers = {}
  for number, lines in pairs(found) do
    local answer = vim.trim(table.concat(lines, '\n'))
    answers[number] = answer ~= '' and answer or nil
  end
  return answers
end

--- The agent's last message in the turn that a prompt started or was steered into.
---@param session kode.Session
---@param prompt string
---@return string? said Nothing where the prompt is not among the items, or its turn has not ended.
function M.said(session, prompt)
  local turn
  local said = ''
  for _, item in ipairs(session.items) do
    local body = item.body
    if body.type == 'userMessage' and body.text == prompt then
      turn, said = item.turnId, ''
    elseif turn == item.turnId and body.type == 'agentMessage' and not item.agentId then
      said = body.text or ''
    end
  end
  local newest = session.items[#session.items]
  local is_over = session.state == 'READY' or newest and newest.turnId ~= turn
  if session.done and session.done.turnId == turn then
    is_over = true
  end
  return turn and is_over and said or nil
end

return M
