--- Details that everybody meets within the first hours.
---
--- Rule: everything is done by keys and commands, as a person does it, and looked for where a person sees it.

local World = require('client.world')
local equal, call, say = World.equal, World.call, World.say

local tests = {}

tests['an own prompt is on the screen, wherever the transcript was read'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({
    { when = '^long', steps = { say(('A line of a long answer.\n\n'):rep(100)) } },
    { steps = { say('Short.') } },
  })
  world:start({ 'a.txt' })
  world:open()
  world:send('long')
  world:wait_turns(1)
  world:type('<C-w>kgg')
  world:wait_lua('the beginning is read', 'return { vim.bo.filetype, vim.fn.line("w0") }', { 'kode', 1 })
  world:type('<C-w>j')
  world:wait_lua('the cursor is in the prompt', 'return vim.bo.filetype', 'kodeprompt')
  world:send('and now')
  world:wait_turns(2)
  world:wait_screen('Short.')
end

tests['what a command can do is said once, and a comfort is no warning'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ call('Bash', { command = 'rm -rf build', description = 'Clean' }), say('Clean.') })
  world:start({ 'a.txt' })
  world:open()
  world:send('clean')
  world:wait_transcript('2  Allow once')
  local transcript = world:transcript()
  equal(select(2, transcript:gsub('deletes folders', '')), 1, 'the risk')
  equal(select(2, transcript:gsub('[Ss]andbox', '')), 1, 'the sandbox')
  local groups = world:lua([[
    local transcript = require('kode.surface').latest().transcript
    local groups = {}
    for row, line in ipairs(vim.api.nvim_buf_get_lines(transcript.buffer, 0, -1, true)) do
      for name, part in pairs({ risk = 'deletes folders', comfort = 'sandbox' }) do
        if line:find(part, 1, true) then
          local range = { { row - 1, 0 }, { row - 1, -1 } }
          for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(transcript.buffer, -1, range[1], range[2], { details = true })) do
            groups[name] = mark[4].hl_group or groups[name]
          end
        end
      end
    end
    return groups
  ]])
  assert(groups.risk ~= groups.comfort, 'both look alike: ' .. vim.inspect(groups))
  equal(groups.risk, 'KodeRisk', 'the risk')
end

tests['all that files of the workspace ask for is approved at once'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  World.write(
    world:path('.kode/settings.json'),
    '{ "permissions": { "allow": ["Bash(make *)"], "defaultMode": "acceptEdits" } }'
  )
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:command('Kode send go')
  world:wait_turns(1)
  world:use_picker()
  world:command('Kode trust')
  world:answer('All 2')
  world:answer('Approve exactly these 2')
  world:wait_told('approved 2 requests')
end

tests['blink.cmp and nvim-cmp have one source for prompts, unless the user has set others'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:lua([[
    package.loaded['blink.cmp.config'] = { sources = { per_filetype = {} } }
    package.loaded['cmp.config'] = { filetypes = { kodeprompt = 'set by the user' } }
  ]])
  world:open()
  equal(
    world:lua([[
      local blink, cmp = package.loaded['blink.cmp.config'], package.loaded['cmp.config']
      return { blink.sources.per_filetype.kodeprompt, cmp.filetypes.kodeprompt }
    ]]),
    { { 'lsp' }, 'set by the user' },
    'the sources'
  )
end

tests['the empty conversation and the empty prompt say what to do'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:open()
  world:wait_screen('Write what you want below.')
  world:wait_screen('Ask Kode. <C-s> sends, @ names files, / commands')
end

return tests
