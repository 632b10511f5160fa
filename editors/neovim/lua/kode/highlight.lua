--- The highlight groups.
---
--- Rule: each is a default link to a group that every color scheme has; the user's own definition wins.

local M = {}

--- All namespaces of the plugin.
M.transcript = vim.api.nvim_create_namespace('kode.transcript')
M.markdown = vim.api.nvim_create_namespace('kode.markdown')
M.comments = vim.api.nvim_create_namespace('kode.comments')
M.review = vim.api.nvim_create_namespace('kode.review')
M.prompt = vim.api.nvim_create_namespace('kode.prompt')

---@type table<string, string>
M.groups = {
  KodeTitle = 'Title',
  KodeUser = 'Title',
  KodeAgent = 'Title',
  KodeThinking = 'Comment',
  KodeTool = 'Identifier',
  KodeToolRunning = 'DiagnosticInfo',
  KodeToolDone = 'DiagnosticOk',
  KodeToolFailed = 'DiagnosticError',
  KodeToolDenied = 'DiagnosticWarn',
  KodeOutput = 'Comment',
  KodeMeta = 'NonText',
  KodeKey = 'Special',
  KodePermission = 'DiagnosticWarn',
  KodeQuestion = 'DiagnosticInfo',
  KodeRisk = 'DiagnosticError',
  KodeQueue = 'Comment',
  KodeNoticeInfo = 'DiagnosticInfo',
  KodeNoticeWarning = 'DiagnosticWarn',
  KodeNoticeError = 'DiagnosticError',
  KodeAdded = 'Added',
  KodeRemoved = 'Removed',
  KodeSignApplied = 'Added',
  KodeSignProposed = 'Changed',
  KodeSignConflict = 'DiagnosticError',
  KodeLineAdded = 'DiffAdd',
  KodeLineRemoved = 'DiffDelete',
  KodeComment = 'DiagnosticInfo',
  KodeAnswer = 'DiagnosticHint',
  KodeStateReady = 'Comment',
  KodeStateWorking = 'DiagnosticInfo',
  KodeStateWaiting = 'DiagnosticWarn',
  KodeStateFailed = 'DiagnosticError',
}

function M.define()
  for name, target in pairs(M.groups) do
    vim.api.nvim_set_hl(0, name, { link = target, default = true })
  end
end

M.define()
vim.api.nvim_create_autocmd('ColorScheme', {
  group = vim.api.nvim_create_augroup('kode.highlight', {}),
  desc = 'kode: define the highlight groups that the color scheme does not have',
  callback = M.define,
})

return M
