--- The whole client with the demo's model: `nvim -u editors/neovim/demo.lua`.
---
--- Rule: nothing of the user's configuration is loaded, and nothing outside a temporary folder is written. No key, no network.
--- KODE_LS_BIN names the server; otherwise it is the build of this repository, or `kode-ls` on the path.

local here = vim.fs.dirname(vim.fs.abspath(debug.getinfo(1, 'S').source:sub(2)))
local repository = vim.fs.dirname(vim.fs.dirname(here))

---@return string
local function server()
  if vim.env.KODE_LS_BIN then
    return vim.env.KODE_LS_BIN
  end
  for _, build in ipairs({ 'release', 'debug' }) do
    local path = vim.fs.joinpath(repository, 'target', build, 'kode-ls')
    if vim.fn.executable(path) == 1 then
      return path
    end
  end
  return 'kode-ls'
end

vim.opt.runtimepath:prepend(here)
vim.opt.swapfile = false
vim.opt.termguicolors = true
vim.opt.statusline = "%f %m%=%{v:lua.require'kode'.statusline()} "
vim.opt.shortmess:append('I')
vim.g.mapleader = ' '

local temporary = assert(vim.uv.os_tmpdir())
local folder = assert(vim.uv.fs_realpath(assert(vim.uv.fs_mkdtemp(vim.fs.joinpath(temporary, 'kode-demo-XXXXXX')))))
local project = vim.fs.joinpath(folder, 'demo-project')
vim.fn.mkdir(vim.fs.joinpath(project, 'src'), 'p')
vim.fn.mkdir(vim.fs.joinpath(project, '.git'), 'p')
vim.fn.writefile({ '# Greeting', '', 'Prints a friendly greeting.' }, vim.fs.joinpath(project, 'README.md'))
vim.fn.writefile({
  'def greet(name):',
  '    return "Helo, " + name',
  '',
  '',
  'if __name__ == "__main__":',
  '    print(greet("world"))',
}, vim.fs.joinpath(project, 'src', 'greeting.py'))

vim.env.KODE_LS_HOME = vim.fs.joinpath(folder, 'state')
vim.g.kode = { cmd = { server() }, init_options = { profile = 'demo' }, keymaps = { review = true } }

vim.api.nvim_create_autocmd('VimEnter', {
  once = true,
  -- Without it the file would have no file type, and so no colors.
  nested = true,
  callback = function()
    vim.cmd.cd({ args = { project }, magic = { file = false } })
    vim.cmd.edit('src/greeting.py')
    require('kode.surface').with(function(surface)
      require('kode.layout').open(surface)
      surface.prompt:insert('Fix the greeting in this demo-project: it says `Helo`.')
      vim.cmd.startinsert({ bang = true })
      vim.notify('Press <C-s> to send. <Esc>g? lists the keys of each window.')
    end)
  end,
})
vim.api.nvim_create_autocmd('VimLeave', {
  callback = function()
    vim.fn.delete(folder, 'rf')
  end,
})
