--- Side questions: `/btw` and `:Kode btw`, answered in a float.
---
--- Rule: everything is done by keys and commands, as a person does it.

local World = require('client.world')
local equal, call, say = World.equal, World.call, World.say

local tests = {}

--- A model whose turn waits for a permission, and which answers side questions.
local function serve(world)
  World.write(world:path('a.txt'), 'one\ntwo\n')
  local held = say('It begins here and goes on.')
  held.chunk, held.gate, held.gate_after_events = 6, 'hold', 6
  local edit = { file_path = '{{cwd}}/a.txt', old_string = 'two', new_string = 'TWO' }
  local steps = { call('Read', { file_path = '{{cwd}}/a.txt' }), call('Edit', edit), say('I have changed it.') }
  local broken = say('never')
  broken.faults = { { status = 401 }, { status = 401 } }
  world:serve({
    { when = '^change', steps = steps },
    { when = 'why', steps = { say('Because two is **small**.') } },
    { when = 'for ever', steps = { held } },
    { when = 'broken', steps = { broken } },
    { steps = { say('Fine.') } },
  })
  world:start({ 'a.txt' })
  world:open()
end

local function wait_float(world, text)
  world:wait_lua('the float has its text', [[
    local window = vim.api.nvim_get_current_win()
    local is_float = vim.api.nvim_win_get_config(window).relative ~= ''
    return { is_float, table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), '\n') }
  ]], { true, text })
end

tests['a side question from the prompt is answered in a float while a call waits'] = function(world)
  serve(world)
  world:send('change it')
  world:wait_asked()
  world:send('/btw why two?')
  wait_float(world, '> why two?\n\nBecause two is **small**.')
  equal(world:lua("return require('kode').waiting()"), 1, 'what waits')
  world:type('Y')
  world:wait_told('yanked the answer')
  equal(world:lua("return vim.fn.getreg('\"')"), 'Because two is **small**.', 'what was yanked')
  world:type('q')
  world:wait_lua('the prompt is the window again', 'return vim.bo.filetype', 'kodeprompt')
  equal(world:text('Prompt: change it'), '\n', 'the prompt')
  world:command('Kode allow')
  world:wait_transcript('I have changed it.')
  local transcript = world:transcript()
  assert(not transcript:find('why two', 1, true) and not transcript:find('small', 1, true), transcript)
  assert(not world:newest_request():find('why two', 1, true), 'the question is in no later request')
end

tests['the answer grows in the float, and closing it cancels the question'] = function(world)
  serve(world)
  for _ = 1, 2 do
    world:command('Kode btw for ever?')
    world:wait_screen('It begins')
    world:type('q')
    world:wait_lua('the prompt is the window again', 'return vim.bo.filetype', 'kodeprompt')
  end
  -- Two are answered at a time: the places are free once the model has stopped.
  for _ = 1, 500 do
    world:command('Kode btw why two?')
    local shown
    World.wait_until('the question is answered or refused', function()
      shown = world:lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), '\\n')")
      return shown:find('small', 1, true) or shown:find('already', 1, true)
    end)
    if shown:find('small', 1, true) then
      return
    end
    world:type('q')
    world:wait_lua('the prompt is the window again', 'return vim.bo.filetype', 'kodeprompt')
  end
  error('a question that was closed takes its place for ever')
end

tests['a model that fails is named in the float, and the question is in the prompt again'] = function(world)
  serve(world)
  world:send('/btw broken?')
  world:wait_screen('401')
  world:type('q')
  world:wait_lua('the prompt has it', 'return vim.api.nvim_buf_get_lines(0, 0, -1, true)', { '/btw broken?' })
end

return tests
