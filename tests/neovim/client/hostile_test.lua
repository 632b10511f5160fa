--- Text of models, tools and files that means harm.
---
--- Rule: it is shown as it is, and nothing in it is run, opened or answered.

local World = require('client.world')
local equal, call, say = World.equal, World.call, World.say

local tests = {}

local function run(world, steps)
  World.write(world:path('a.txt'), 'one\n')
  world:serve(steps)
  world:start({ 'a.txt' }, { init_options = { mode = 'bypassPermissions' } })
  world:command('Kode open')
  World.wait_until('the conversation is open', function()
    return world:lua('return vim.bo.filetype') == 'kodeprompt'
  end)
  world:type('igo<Esc><CR>')
  world:wait_turns(1)
end

tests['a title is no code for the winbar'] = function(world)
  run(world, { say('Fine.') })
  world:command([[Kode rename %{execute('let g:pwned=1')}%#Error#%=%<x]])
  world:wait_transcript([[# %{execute('let g:pwned=1')}]])
  world:lua([[
    require('kode.surface').latest().connection.reason = "%{execute('let g:pwned=1')}"
    require('kode.surface').latest().connection.status = 'restarting'
  ]])
  world:wait_screen([[%{execute('let g:pwned=1')}]])
  equal(world:lua('return vim.g.pwned'), vim.NIL, 'what was run')
end

tests['control characters and modelines are only shown'] = function(world)
  run(world, { say('one \27[31mred\27[0m \7 two\r\nvim: set filetype=vim modifiable:\n\0end') })
  world:wait_transcript('vim: set filetype=vim modifiable:')
  local surface = "vim.bo[require('kode.surface').latest().transcript.buffer]"
  equal(world:lua('return ' .. surface .. '.filetype'), 'kode', 'the filetype')
  equal(world:lua('return ' .. surface .. '.modifiable'), false, 'modifiable')
  assert(world:screen():find('^[[31m', 1, true), world:screen())
end

tests['a name in the text is opened only when it is a file'] = function(world)
  run(world, { say('See `|!touch /tmp/kode-pwned` or $(touch x) or %:r or +quit or /etc or a.txt.') })
  world:wait_transcript('a.txt.')
  world:type('<C-w>kG')
  world:type('0')
  for _ = 1, 13 do
    world:type('gfW')
  end
  World.wait_until('none of them was opened', function()
    return #world:lua('return notified') == 13
  end)
  world:type('gf')
  World.wait_until('the only file is opened', function()
    return world:lua('return vim.fs.basename(vim.api.nvim_buf_get_name(0))') == 'a.txt'
  end)
  equal(vim.uv.fs_stat('/tmp/kode-pwned'), nil, 'what was run')
  equal(
    world:lua([[
      return vim.tbl_filter(function(bufnr)
        return vim.bo[bufnr].buflisted and vim.fs.basename(vim.api.nvim_buf_get_name(bufnr)) ~= 'a.txt'
      end, vim.api.nvim_list_bufs())
    ]]),
    {},
    'other listed buffers'
  )
end

tests['a path with everything in it is edited and gone to'] = function(world)
  local name = "it's [a] %file #1 $HOME `x`.txt"
  World.write(world:path(name), 'one\n')
  World.write(world:path('b.txt'), 'b\n')
  world:serve({
    call('Read', { file_path = '{{cwd}}/' .. name }),
    call('Edit', { file_path = '{{cwd}}/' .. name, old_string = 'one', new_string = 'ONE' }),
    say('Done.'),
  })
  world:start({ 'b.txt' }, { init_options = { mode = 'bypassPermissions' } })
  world:lua('vim.cmd.edit({ args = { ... }, magic = { file = false } })', name)
  world:command('Kode send go')
  world:wait_turns(1)
  world:wait_text('ONE\n', name)
  equal(world:lua('return vim.bo.modified'), false, 'modified')
  equal(World.read(world:path(name)), 'ONE\n', 'the file')
  World.wait_until('the change is listed', function()
    return world:lua("return require('kode.surface').latest().review:summary()") == '1 file +1 -1'
  end)
  world:command('buffer b.txt')
  world:command('Kode next')
  World.wait_until('the change is gone to', function()
    return vim.endswith(world:lua('return vim.api.nvim_buf_get_name(0)'), name)
  end)
end

tests['an open fence does not take in what comes after it'] = function(world)
  run(world, { say('```lua\nlocal x = 1') })
  world:wait_transcript('local x = 1\n```')
end

return tests
