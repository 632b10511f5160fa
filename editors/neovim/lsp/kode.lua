--- The configuration of kode-ls for `vim.lsp.enable('kode')`.
---
--- Rule: this file works alone, copied anywhere on the runtime path: the server then speaks plain LSP. Where the plugin is
--- there as well, it announces what the plugin can do.

---@type vim.lsp.Config
local config = {
  cmd = { 'kode-ls' },
  root_markers = { '.git', '.hg', '.jj', '.kode' },
  workspace_required = false,
  -- An edit of the agent counts when the server has seen the new text, so waiting long costs time.
  flags = { debounce_text_changes = 20 },
  exit_timeout = 2000,
}

if #vim.api.nvim_get_runtime_file('lua/kode/lsp.lua', false) > 0 then
  return require('kode.lsp').config(config)
end
return config
