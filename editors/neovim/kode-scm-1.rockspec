-- How LuaRocks installs the plugin.
--
-- Rule: everything that belongs on the runtime path is named here.
rockspec_format = '3.0'
package = 'kode'
version = 'scm-1'
source = {
  url = 'git+file://.',
}
description = {
  summary = 'The client of the coding agent kode-ls for Neovim',
  license = 'MIT OR Apache-2.0',
  labels = { 'neovim' },
}
dependencies = {
  'lua >= 5.1',
}
build = {
  type = 'builtin',
  copy_directories = { 'doc', 'lsp', 'plugin' },
}
