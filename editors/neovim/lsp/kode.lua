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

-- LuaRocks puts the modules of the plugin elsewhere than on the runtime path.
local is_there, plugin = pcall(require, 'kode.lsp')
return is_there and plugin.config(config) or config
