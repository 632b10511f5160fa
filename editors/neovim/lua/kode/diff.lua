--- A change in Neovim's own diff: the text without it on the left, the text with it on the right.
---
--- Rule: the right side can be edited. For an applied change it is the file itself; for a proposed one it is the proposal, and
--- only `:w` accepts it, as it is then.

local api = vim.api
local edits = require('kode.edits')

--- Bytes of an edited proposal that are sent back, at most.
local MAX_EDITED = 512 * 1024

local M = {}

---@param text string
---@return string[] lines
---@return boolean ends Whether the last line is ended.
local function split(text)
  local lines = vim.split(text, '\n', { plain = true })
  if #lines > 1 and lines[#lines] == '' then
    table.remove(lines)
    return lines, true
  end
  return lines, text == ''
end

---@param path string
---@return string?
local function filetype(path)
  return (vim.filetype.match({ filename = path }))
end

---@param name string
---@param text string
---@param path string
---@return integer
local function side(name, text, path)
  local bufnr = api.nvim_create_buf(false, true)
  vim.bo[bufnr].bufhidden = 'wipe'
  api.nvim_buf_set_name(bufnr, ('kode://%s/%d%s'):format(name, bufnr, path))
  require('kode.scratch').fill(bufnr, (split(text)))
  vim.bo[bufnr].filetype = filetype(path) or ''
  vim.keymap.set('n', 'q', '<Cmd>tabclose<CR>', { buffer = bufnr, nowait = true, desc = 'Close the diff' })
  return bufnr
end

---@param left integer
---@param right integer
local function open(left, right)
  vim.cmd.sbuffer({ args = { tostring(right) }, mods = { tab = vim.fn.tabpagenr() } })
  vim.cmd.diffthis()
  local window = api.nvim_open_win(left, false, { split = 'left', win = 0 })
  api.nvim_win_call(window, vim.cmd.diffthis)
end

--- Shows the agent's changes in a file against the text without them.
---@param surface kode.Surface
---@param uri kode.Uri
function M.file(surface, uri)
  surface:ask('agent/document/baseline', { uri = uri }, function(baseline)
    local path = vim.uri_to_fname(uri)
    local right = edits.buffer(uri) or vim.fn.bufadd(path)
    vim.bo[right].buflisted = true
    local left = side('without', baseline.text, path)
    open(left, right)
    local group = api.nvim_create_augroup('kode.diff.' .. left, {})
    api.nvim_create_autocmd('User', {
      group = group,
      pattern = 'KodeReviewChanged',
      callback = function()
        if not api.nvim_buf_is_valid(left) then
          return api.nvim_del_augroup_by_id(group)
        end
        surface:ask('agent/document/baseline', { uri = uri }, function(now)
          if api.nvim_buf_is_valid(left) then
            require('kode.scratch').fill(left, (split(now.text)))
          end
        end)
      end,
    })
  end)
end

--- The current text of a document.
---@param uri kode.Uri
---@return string
local function current(uri)
  local bufnr = edits.buffer(uri)
  if bufnr then
    local text = table.concat(api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n')
    return vim.bo[bufnr].eol and text .. '\n' or text
  end
  local file = io.open(vim.uri_to_fname(uri), 'rb')
  if not file then
    return ''
  end
  local text = file:read('a')
  file:close()
  return text
end

--- The arguments of a call that produce the proposal as the user has edited it; nil if none exist.
---@param input table
---@param before string
---@param after string
---@return table?
function M.arguments(input, before, after)
  local new = vim.deepcopy(input)
  if input.content then
    new.content = after
  elseif input.edits then
    new.edits = { { old_string = before, new_string = after } }
  elseif input.new_string then
    new.old_string, new.new_string = before, after
    new.replace_all = nil
  else
    return nil
  end
  return new
end

---@param surface kode.Surface
---@param prompt kode.PermissionPrompt
---@param uri kode.Uri
---@param proposed string
---@param edited string
local function accept(surface, prompt, uri, proposed, edited)
  if edited == proposed then
    return surface:respond(prompt, { decision = 'allow' })
  end
  local before = current(uri)
  local input = #before + #edited <= MAX_EDITED and M.arguments(prompt.input, before, edited)
  if not input then
    return vim.notify(
      'kode: an edited proposal of this call cannot be sent back; answer the prompt and edit the file',
      vim.log.levels.ERROR
    )
  end
  surface:respond(prompt, {
    decision = 'allow',
    updatedInput = input,
    feedback = 'The user has changed the proposal before accepting it.',
  })
end

--- The file that a permission prompt is about, from the ledger.
---@param surface kode.Surface
---@param prompt kode.PermissionPrompt
---@return kode.Uri?
local function asked_file(surface, prompt)
  for uri, file in pairs(surface.review.files) do
    for _, hunk in ipairs(file.hunks) do
      if hunk.permissionId == prompt.permissionId then
        return uri
      end
    end
  end
end

--- Shows a proposed change; `:w` accepts the right side, closing leaves the prompt waiting.
---@param surface kode.Surface
---@param prompt kode.PermissionPrompt
function M.proposal(surface, prompt)
  surface.review:refresh(function()
    local uri = asked_file(surface, prompt)
    if not uri then
      return vim.notify('kode: this change cannot be shown as a diff of one file', vim.log.levels.WARN)
    end
    surface:ask('agent/document/proposed', { uri = uri }, function(result)
      local path = vim.uri_to_fname(uri)
      local lines, ends = split(result.text)
      local right
      right = require('kode.scratch').editor('proposal' .. path, lines, function(text)
        accept(surface, prompt, uri, result.text, ends and text .. '\n' or text)
        vim.schedule(function()
          local window = vim.fn.bufwinid(right)
          if window ~= -1 and #api.nvim_list_tabpages() > 1 then
            vim.cmd.tabclose({ args = { tostring(api.nvim_tabpage_get_number(api.nvim_win_get_tabpage(window))) } })
          end
        end)
      end)
      vim.bo[right].filetype = filetype(path) or ''
      open(side('current', current(uri), path), right)
    end)
  end)
end

return M
