--- Comments on lines: written during a review, sent together as one prompt, and answered at their lines.
---
--- Rule: a comment belongs to the user until it is sent: marks move it with its lines, and unsent ones go into the draft when
--- Neovim ends. A sent comment stays at its lines until it is rewritten, removed, or followed by the next round.

local api = vim.api
local edits = require('kode.edits')
local highlight = require('kode.highlight')
local render = require('kode.render')
local rounds = require('kode.rounds')

--- Lines of a change that are sent with a comment on it.
local MAX_QUOTED = 60
--- Bytes of lines that are sent with a comment on them.
local MAX_SELECTED = 20000
--- Lines of an answer that are shown at a comment; the conversation has the rest.
local MAX_ANSWER = 20
--- The width of an answer: lines beside the text do not wrap.
local ANSWER_WIDTH = 90

---@class kode.Comment
---@field uri kode.Uri
---@field first integer The first row.
---@field last integer The last row.
---@field text string
---@field mark? integer Where it is in a loaded buffer.
---@field round? kode.CommentRound What it was sent with.
---@field answer? string The agent's answer; present once its round is over.

---@class kode.CommentRound Comments that were sent together.
---@field prompt string The prompt they were sent as.
---@field comments kode.Comment[] By their numbers.

local M = {}

---@type table<kode.SessionId, kode.Comment[]>
local by_session = {}

---@param surface kode.Surface
---@return kode.Comment[]
local function list(surface)
  local id = surface.session.id
  by_session[id] = by_session[id] or {}
  return by_session[id]
end

--- Updates the place of a comment from its mark.
---@param comment kode.Comment
---@return integer? bufnr The buffer, where it is loaded.
local function locate(comment)
  local bufnr = edits.buffer(comment.uri)
  if bufnr and comment.mark then
    local place = api.nvim_buf_get_extmark_by_id(bufnr, highlight.comments, comment.mark, { details = true })
    if place[1] then
      comment.first, comment.last = place[1], math.max(place[3].end_row or place[1], place[1])
    end
  end
  return bufnr
end

--- The comments of all sessions on a buffer.
---@param bufnr integer
---@return kode.Comment[]
local function of_buffer(bufnr)
  local found = {}
  for _, comments in pairs(by_session) do
    for _, comment in ipairs(comments) do
      if edits.buffer(comment.uri) == bufnr then
        found[#found + 1] = comment
      end
    end
  end
  return found
end

--- The lines of an answer, wrapped.
---@param answer string
---@return string[]
local function wrapped(answer)
  local lines = {}
  for _, paragraph in ipairs(render.lines(answer)) do
    local line = ''
    for word in paragraph:gmatch('%S+') do
      if line ~= '' and vim.fn.strdisplaywidth(line .. ' ' .. word) > ANSWER_WIDTH then
        lines[#lines + 1], line = line, word
      else
        line = line == '' and word or line .. ' ' .. word
      end
    end
    lines[#lines + 1] = line
  end
  if #lines > MAX_ANSWER then
    lines = vim.list_slice(lines, 1, MAX_ANSWER)
    lines[#lines + 1] = '… (the conversation has the rest)'
  end
  return lines
end

--- Draws the comments of a buffer.
---@param bufnr integer
function M.draw(bufnr)
  local comments = of_buffer(bufnr)
  for _, comment in ipairs(comments) do
    locate(comment)
  end
  api.nvim_buf_clear_namespace(bufnr, highlight.comments, 0, -1)
  local end_of_buffer = api.nvim_buf_line_count(bufnr) - 1
  for _, comment in ipairs(comments) do
    local lines = vim.tbl_map(function(line)
      return { { '  » ' .. line, 'KodeComment' } }
    end, render.lines(comment.text))
    for _, line in ipairs(comment.answer and wrapped(comment.answer) or {}) do
      lines[#lines + 1] = { { '  « ' .. render.line(line), 'KodeAnswer' } }
    end
    local first, last = math.min(comment.first, end_of_buffer), math.min(comment.last, end_of_buffer)
    comment.mark = api.nvim_buf_set_extmark(bufnr, highlight.comments, first, 0, {
      end_row = last,
      sign_text = '»',
      sign_hl_group = 'KodeComment',
      priority = 30,
    })
    -- Removed lines are drawn above the next line, so the comment is drawn before them.
    api.nvim_buf_set_extmark(bufnr, highlight.comments, last, 0, { virt_lines = lines })
  end
end

---@param comments kode.Comment[]
local function redraw(comments)
  local drawn = {}
  for _, comment in ipairs(comments) do
    local bufnr = edits.buffer(comment.uri)
    if bufnr and not drawn[bufnr] then
      drawn[bufnr] = true
      M.draw(bufnr)
    end
  end
  require('kode.status').changed()
end

--- The comment of a session on a row of a buffer.
---@param surface kode.Surface
---@param bufnr integer
---@param row integer
---@return kode.Comment?
local function at(surface, bufnr, row)
  for _, comment in ipairs(list(surface)) do
    if locate(comment) == bufnr and row >= comment.first and row <= comment.last then
      return comment
    end
  end
end

---@param surface kode.Surface
---@param comment kode.Comment
local function remove(surface, comment)
  by_session[surface.session.id] = vim.tbl_filter(function(other)
    return other ~= comment
  end, list(surface))
end

---@param surface kode.Surface
---@param bufnr integer
---@param first integer
---@param last integer
---@param text string
local function put(surface, bufnr, first, last, text)
  local comment = at(surface, bufnr, first)
  if text == '' then
    if not comment then
      return
    end
    remove(surface, comment)
  elseif comment then
    comment.text, comment.round, comment.answer = text, nil, nil
  else
    comment = { uri = vim.uri_from_bufnr(bufnr), first = first, last = last, text = text }
    table.insert(list(surface), comment)
  end
  redraw({ comment })
end

--- Writes a comment on rows of the current buffer, or changes the existing one. Without text it prompts for it, and an empty
--- text removes the comment.
---@param surface kode.Surface
---@param first integer
---@param last integer
---@param text string
function M.write(surface, first, last, text)
  local bufnr = api.nvim_get_current_buf()
  if vim.bo[bufnr].buftype ~= '' or api.nvim_buf_get_name(bufnr) == '' then
    return vim.notify('kode: comments need a buffer with a file', vim.log.levels.INFO)
  end
  if text ~= '' then
    return put(surface, bufnr, first, last, text)
  end
  local comment = at(surface, bufnr, first)
  vim.ui.input({ prompt = 'Comment: ', default = comment and not comment.round and comment.text or '' }, function(words)
    if words and api.nvim_buf_is_loaded(bufnr) then
      put(surface, bufnr, first, last, vim.trim(words))
    end
  end)
end

--- The unsent comments of a session, in the order of their places.
---@param surface kode.Surface
---@return kode.Comment[]
function M.all(surface)
  local comments = vim.tbl_filter(function(comment)
    return not comment.round
  end, list(surface))
  for _, comment in ipairs(comments) do
    locate(comment)
  end
  table.sort(comments, function(a, b)
    if a.uri ~= b.uri then
      return a.uri < b.uri
    end
    return a.first < b.first
  end)
  return comments
end

--- Puts the comments into the quickfix list.
---@param surface kode.Surface
---@return integer count
function M.quickfix(surface)
  local items = vim.tbl_map(function(comment)
    return {
      filename = vim.uri_to_fname(comment.uri),
      lnum = comment.first + 1,
      end_lnum = comment.last + 1,
      type = 'N',
      text = render.line(comment.text),
    }
  end, M.all(surface))
  vim.fn.setqflist({}, ' ', { title = 'Kode: comments that were not sent', items = items })
  return #items
end

--- The name of a place in the prompt.
---@param comment kode.Comment
---@param root string
---@return string
local function place(comment, root)
  local path = vim.uri_to_fname(comment.uri)
  path = vim.fs.relpath(root, path) or path
  local first, last = comment.first + 1, comment.last + 1
  return first == last and ('%s:%d'):format(path, first) or ('%s:%d-%d'):format(path, first, last)
end

---@param text string
---@param sign string
---@return string[]
local function signed(text, sign)
  return text == '' and {} or vim.tbl_map(function(line)
    return sign .. line
  end, vim.split(text:gsub('\n$', ''), '\n', { plain = true }))
end

--- The change that a comment is on, as a diff.
---@param comment kode.Comment
---@return string[]
local function quoted(comment)
  local bufnr = edits.buffer(comment.uri)
  local anchor = bufnr and require('kode.review').at(bufnr, comment.first, comment.last)[1]
  if not anchor then
    return {}
  end
  local lines = signed(anchor.hunk.oldText, '-')
  vim.list_extend(lines, signed(anchor.hunk.newText, '+'))
  if #lines > MAX_QUOTED then
    lines = vim.list_slice(lines, 1, MAX_QUOTED)
    lines[#lines + 1] = '…'
  end
  table.insert(lines, 1, '```diff')
  lines[#lines + 1] = '```'
  return lines
end

--- The lines that a comment is on, as they are now.
---@param comment kode.Comment
---@return kode.InputPart?
local function selection(comment)
  local bufnr = edits.buffer(comment.uri)
  if not bufnr then
    return nil
  end
  local lines = api.nvim_buf_get_lines(bufnr, comment.first, comment.last + 1, false)
  return {
    type = 'selection',
    uri = comment.uri,
    range = {
      start = { line = comment.first, character = 0 },
      ['end'] = { line = comment.last + 1, character = 0 },
    },
    text = table.concat(lines, '\n'):sub(1, MAX_SELECTED),
  }
end

---@param comments kode.Comment[]
---@param root string
---@param words string
---@param ending? string
---@return string
local function prompt_text(comments, root, words, ending)
  local lines = { words ~= '' and words or 'My comments on your changes:' }
  for number, comment in ipairs(comments) do
    lines[#lines + 1] = ''
    lines[#lines + 1] = ('%d. %s'):format(number, place(comment, root))
    vim.list_extend(lines, quoted(comment))
    lines[#lines + 1] = comment.text
  end
  vim.list_extend(lines, ending and { '', ending } or {})
  return table.concat(lines, '\n')
end

--- Sends all comments as one prompt. Answered comments of earlier rounds are removed once the server has it.
---@param surface kode.Surface
---@param words string The text above them.
function M.send(surface, words)
  local comments = M.all(surface)
  if #comments == 0 then
    return vim.notify('kode: no comments (:Kode comment)', vim.log.levels.INFO)
  end
  local parts = {}
  for _, comment in ipairs(comments) do
    parts[#parts + 1] = selection(comment)
  end
  local before = vim.tbl_filter(function(comment)
    return comment.answer ~= nil
  end, list(surface))
  local prompt = prompt_text(comments, surface.connection.root, words, rounds.ENDING)
  ---@type kode.CommentRound
  local round = { prompt = prompt, comments = comments }
  for _, comment in ipairs(comments) do
    comment.round = round
  end
  surface:send(prompt, {
    parts = parts,
    sent = function()
      for _, comment in ipairs(before) do
        remove(surface, comment)
      end
      redraw(vim.list_extend(before, comments))
    end,
    failed = function()
      for _, comment in ipairs(comments) do
        comment.round = comment.round ~= round and comment.round or nil
      end
      redraw(comments)
    end,
  })
end

--- Shows the agent's answers to the comments of finished rounds.
---@param surface kode.Surface
function M.answered(surface)
  local answered = {}
  for _, comment in ipairs(list(surface)) do
    local round = comment.round
    local said = round and not comment.answer and rounds.said(surface.session, round.prompt)
    if round and said then
      local answers = rounds.answers(said, #round.comments)
      for number, other in ipairs(round.comments) do
        if other == comment then
          comment.answer = answers[number] or 'Not answered here: see the conversation for what came of it.'
        end
      end
      answered[#answered + 1] = comment
    end
  end
  redraw(answered)
end

--- Removes all comments of a session.
---@param surface kode.Surface
function M.drop(surface)
  local comments = list(surface)
  by_session[surface.session.id] = nil
  redraw(comments)
end

--- Puts unsent comments into the drafts when Neovim ends.
function M.keep()
  for id in pairs(by_session) do
    local surface = require('kode.surface').all()[id]
    local unsent = surface and M.all(surface) or {}
    if #unsent > 0 then
      surface:buffers()
      surface.prompt:insert(prompt_text(unsent, surface.connection.root, ''))
    end
  end
end

local group = api.nvim_create_augroup('kode.comments', {})
api.nvim_create_autocmd('BufUnload', {
  group = group,
  desc = 'kode: remember where the comments of a buffer are',
  callback = function(event)
    for _, comment in ipairs(of_buffer(event.buf)) do
      locate(comment)
      comment.mark = nil
    end
  end,
})
api.nvim_create_autocmd('BufReadPost', {
  group = group,
  desc = 'kode: show the comments of a buffer that was read',
  callback = function(event)
    for _, comment in ipairs(of_buffer(event.buf)) do
      comment.mark = nil
    end
    M.draw(event.buf)
  end,
})

return M
