--- Defines `:Kode` and the `<Plug>` maps.
---
--- Rule: nothing else is loaded before one of them is used, and no key is mapped by default.

if vim.g.loaded_kode then
  return
end
vim.g.loaded_kode = true

if vim.fn.has('nvim-0.11') == 0 then
  vim.api.nvim_create_user_command('Kode', function()
    vim.notify('kode: Neovim 0.11 or later is needed', vim.log.levels.ERROR)
  end, { nargs = '*', bang = true, range = true })
  return
end

vim.api.nvim_create_user_command('Kode', function(args)
  require('kode.command').run(args)
end, {
  nargs = '*',
  bang = true,
  range = true,
  desc = 'The coding agent',
  complete = function(lead, line)
    return require('kode.command').complete(lead, line)
  end,
})

local map = vim.keymap.set
for name, command in pairs({
  toggle = 'toggle',
  open = 'open',
  new = 'new',
  sessions = 'sessions',
  stop = 'stop',
  review = 'review',
  diff = 'diff',
  next = 'next',
  previous = 'previous',
  permission = 'permission',
  allow = 'allow',
  deny = 'deny',
  answer = 'answer',
  queue = 'queue',
  restore = 'restore',
  paste = 'paste',
  ['send-comments'] = 'comments send',
  revert = 'revert',
  ['keep-file'] = 'keep file',
  ['undo-file'] = 'undo file',
  ['keep-all'] = 'keep all',
  ['undo-all'] = 'undo all',
}) do
  map('n', ('<Plug>(kode-%s)'):format(name), ('<Cmd>Kode %s<CR>'):format(command), { desc = 'Kode: ' .. command })
end
map('x', '<Plug>(kode-send)', ':Kode send<CR>', { silent = true, desc = 'Kode: attach the lines to a prompt' })
map('x', '<Plug>(kode-comment)', ':Kode comment<CR>', { silent = true, desc = 'Kode: comment on the lines' })
map('n', '<Plug>(kode-comment)', '<Cmd>Kode comment<CR>', { desc = 'Kode: comment on the line' })
map('n', '<Plug>(kode-send)', ':Kode send ', { desc = 'Kode: send a prompt' })
for _, wish in ipairs({ 'keep', 'undo' }) do
  map({ 'n', 'x' }, ('<Plug>(kode-%s)'):format(wish), function()
    return require('kode.review').repeatable(wish)
  end, { expr = true, desc = ('Kode: %s the change'):format(wish) })
end
