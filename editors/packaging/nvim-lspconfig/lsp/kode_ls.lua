---@brief
---
--- https://github.com/kode-ls/kode-ls
---
--- A coding agent that is a language server: it reads your buffers, edits them through workspace edits, and asks before it
--- changes files or runs commands. Install `kode-ls` from the releases page of its repository, and set `ANTHROPIC_API_KEY` or
--- `OPENAI_API_KEY`; `init_options = { profile = 'demo' }` needs no key.
---
--- `client:exec_cmd({ command = 'kode.ask', arguments = { { text = '…' } } })` starts a turn. The plugin kode.nvim shows the
--- conversation as well.

---@type vim.lsp.Config
return {
  cmd = { 'kode-ls' },
  root_markers = { '.git', '.hg', '.jj', '.kode' },
  workspace_required = false,
  flags = { debounce_text_changes = 20 },
  exit_timeout = 2000,
}
