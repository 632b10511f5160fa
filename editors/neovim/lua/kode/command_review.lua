--- The sub-commands of `:Kode` about the changes of the agent.
---
--- Rule: they send an intent; the review knows which changes are meant, and the server decides.

local api = vim.api
local common = require('kode.command_common')
local surface_of = require('kode.surface')
local fixed, say = common.fixed, common.say

--- Opens the quickfix list with all changes to review, or the location list with those of the current file.
---@param surface kode.Surface
---@param only_file? boolean
local function open_list(surface, only_file)
  local window = api.nvim_get_current_win()
  local bufnr = only_file and api.nvim_get_current_buf() or nil
  require('kode.review').list(surface, bufnr, function(entries)
    if #entries == 0 then
      return say('no changes to review')
    end
    local what = { title = 'Kode: changes to review', items = entries }
    if not only_file then
      vim.fn.setqflist({}, ' ', what)
    elseif api.nvim_win_is_valid(window) then
      vim.fn.setloclist(window, {}, ' ', what)
    end
    -- A user who has gone elsewhere meanwhile stays there.
    if api.nvim_get_current_win() == window then
      vim.cmd(only_file and 'lopen' or 'copen')
    end
  end)
end

---@param what "keep"|"undo"
---@return fun(call: kode.CommandCall)
local function decide(what)
  return function(call)
    local review = require('kode.review')
    local words = {}
    for _, word in ipairs(call.words) do
      words[word] = true
    end
    for _, reach in ipairs({ 'file', 'turn', 'all' }) do
      if words[reach] then
        local surface = surface_of.current()
        if not surface then
          return say('no conversation is open')
        end
        return review.resolve_all(what, reach, surface, words.force)
      end
    end
    local range = call.range
    ---@type integer
    local first = range and range.first or api.nvim_win_get_cursor(0)[1]
    ---@type integer
    local last = range and range.last or first
    review.resolve_rows(what, first - 1, last - 1, words.force == true)
  end
end

---@type table<string, kode.SubCommand>
local commands = {}

commands.review = {
  text = 'list the changes to review in the quickfix list; file: of this file in the location list',
  complete = fixed({ 'file' }),
  run = function(call)
    surface_of.with(function(surface)
      open_list(surface, call.words[1] == 'file')
    end)
  end,
}

commands.comment = {
  text = 'comment on the line or the range; an empty comment is removed',
  run = function(call)
    local row = api.nvim_win_get_cursor(0)[1]
    local range = call.range or { first = row, last = row }
    surface_of.with(function(surface)
      require('kode.comments').write(surface, range.first - 1, range.last - 1, call.text)
    end)
  end,
}

commands.comments = {
  text = 'list the comments in the quickfix list; send: as one prompt; drop: remove them',
  complete = fixed({ 'send', 'drop' }),
  run = function(call)
    surface_of.with(function(surface)
      local comments = require('kode.comments')
      if call.words[1] == 'send' then
        return comments.send(surface, (call.text:gsub('^send%s*', '')))
      elseif call.words[1] == 'drop' then
        return comments.drop(surface)
      end
      if comments.quickfix(surface) == 0 then
        return say('no comments (:Kode comment)')
      end
      vim.cmd.copen()
    end)
  end,
}

--- The prompt that asks about a change; without a change, the oldest that waits, where it is about one.
---@param surface kode.Surface
---@param anchor? kode.Anchor
---@return kode.PermissionPrompt?
local function asked(surface, anchor)
  local prompts = surface.session.permissions
  if not anchor then
    return prompts[1] and prompts[1].preview.type == 'diff' and prompts[1] or nil
  end
  for _, prompt in ipairs(prompts) do
    if prompt.permissionId == anchor.hunk.permissionId then
      return prompt
    end
  end
end

commands.diff = {
  text = 'show the changes of this file as a diff that can be edited',
  run = function()
    local review, diff = require('kode.review'), require('kode.diff')
    local bufnr, row = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1] - 1
    local anchor = review.at(bufnr, row, row)[1] or review.at(bufnr, 0, api.nvim_buf_line_count(0))[1]
    local surface = anchor and anchor.surface or surface_of.current()
    local prompt = surface and asked(surface, anchor)
    if surface and prompt then
      return diff.proposal(surface, prompt)
    elseif anchor then
      return diff.file(anchor.surface, vim.uri_from_bufnr(0))
    end
    say('no change of the agent in this buffer')
  end,
}

commands.reviewed = {
  text = 'mark the changes of this file as reviewed, or remove the mark; nothing is kept or undone',
  run = function()
    require('kode.review').mark(api.nvim_get_current_buf())
  end,
}

local reaches = { 'file', 'turn', 'all', 'force' }

commands.keep = {
  text = 'keep the change under the cursor or in the range; or: file, turn, all',
  complete = fixed(reaches),
  run = decide('keep'),
}

commands.undo = {
  text = 'undo the change under the cursor or in the range; or: file, turn, all; force: also where you edited it',
  complete = fixed(reaches),
  run = decide('undo'),
}

commands.revert = {
  text = 'undo the newest keep, undo or restore',
  run = function()
    surface_of.with(require('kode.review').revert)
  end,
}

commands.apply = {
  text = 'replace the lines of the range by the code block yanked last, as a change to review',
  run = function(call)
    local row = api.nvim_win_get_cursor(0)[1]
    local range = call.range or { first = row, last = row }
    surface_of.with(function(surface)
      require('kode.code').replace(surface, range.first, range.last)
    end)
  end,
}

commands.next = {
  text = 'go to the next change',
  run = function()
    require('kode.review').jump(1)
  end,
}

commands.previous = {
  text = 'go to the previous change',
  run = function()
    require('kode.review').jump(-1)
  end,
}

commands.restore = {
  text = 'restore the state before a prompt',
  run = function()
    surface_of.with(function(surface)
      local pick = require('kode.pick_sessions')
      pick.checkpoint(surface, function(checkpoint)
        pick.restore(surface, checkpoint)
      end)
    end)
  end,
}
commands.checkpoints = { text = 'the same as restore', run = commands.restore.run }

return commands
