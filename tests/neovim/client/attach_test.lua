--- Files and pictures that go with a prompt.
---
--- Rule: what the agent is given is read from the request that the model got; a clipboard is a program on the path.

local World = require('client.world')
local equal, say = World.equal, World.say

local tests = {}

--- A picture of one pixel.
local PNG = vim.base64.decode(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
)

local function parts(world)
  return world:lua([[
    local surface = require('kode.surface').latest()
    return surface and vim.tbl_map(require('kode.attach').label, surface.parts) or {}
  ]])
end

--- Puts a program on the path of the Neovim under test that gives bytes as the clipboard.
local function clipboard(world, name, bytes)
  local folder = world.folder .. '/bin'
  World.write(folder .. '/bytes', bytes)
  World.write(('%s/%s'):format(folder, name), ('#!/bin/sh\necho "$0 $*" >%s/asked\ncat %s/bytes\n'):format(folder, folder))
  assert(vim.uv.fs_chmod(folder .. '/' .. name, 493))
  world.env.PATH = folder .. ':' .. vim.env.PATH
  world.env.DISPLAY, world.env.WAYLAND_DISPLAY = ':99', ''
end

tests['a picture and a file go with the next prompt, and are shown until then'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  World.write(world:path('other file.md'), 'the other file\n')
  World.write(world:path('dot.png'), PNG)
  world:serve({ say('I see.') })
  world:start({ 'a.txt' })
  world:command('Kode attach dot.png')
  world:command('Kode attach other file.md')
  world:command('Kode attach a.txt')
  World.wait_until('all of it is there', function()
    return vim.deep_equal(parts(world), { 'png, 1 KiB', 'other file.md', 'a.txt' })
  end)
  world:open()
  world:wait_screen('+ png, 1 KiB · + other file.md')
  world:use_picker()
  world:command('Kode detach')
  world:answer('a.txt')
  world:send('look')
  world:wait_turns(1)
  local request = world:newest_request()
  assert(request:find(vim.base64.encode(PNG), 1, true), 'the picture is sent')
  assert(request:find('the other file', 1, true), 'the file is sent')
  equal(parts(world), {}, 'what goes with the next prompt')
  world:wait_transcript('other file.md')
end

tests['the picture in the clipboard is attached by a key'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  clipboard(world, 'xclip', PNG)
  world:serve({ say('I see.') })
  world:start({ 'a.txt' })
  world:open()
  world:type('gp')
  world:wait_told('attached png, 1 KiB')
  assert(World.read(world.folder .. '/bin/asked'):find('-target image/png', 1, true), 'what the clipboard was asked')
end

tests['what cannot be attached is told, and why'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  World.write(world:path('large.png'), PNG .. ('x'):rep(6 * 1024 * 1024))
  clipboard(world, 'xclip', 'only text')
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:command('Kode attach missing.txt')
  world:wait_told('ENOENT')
  world:command('Kode attach large.png')
  world:wait_told('at most 5 MiB are accepted')
  world:command('Kode paste')
  world:wait_told('no image in the clipboard')
  equal(parts(world), {}, 'what goes with the next prompt')
  world:lua("vim.env.PATH = '/nowhere'")
  world:command('Kode paste')
  world:wait_told('install wl-clipboard')
end

tests['what goes with a prompt is kept with its draft, but no large picture'] = function(world)
  World.write(world:path('a.txt'), 'one\n')
  World.write(world:path('large.png'), PNG .. ('x'):rep(400 * 1024))
  world:serve({ say('Fine.') })
  world:start({ 'a.txt' })
  world:open()
  world:command('Kode attach a.txt')
  world:command('Kode attach large.png')
  world:type('ihalf a thought<Esc>')
  World.wait_until('both go with the prompt', function()
    return #parts(world) == 2
  end)
  world:command('quitall!')
  World.wait_until('it has ended', function()
    return vim.fn.jobwait({ world.nvim }, 0)[1] ~= -1
  end)
  world:start({ 'a.txt' })
  world:command('Kode resume')
  world:wait_lua('the prompt is open', 'return vim.bo.filetype', 'kodeprompt')
  world:wait_text('half a thought\n')
  equal(parts(world), { 'a.txt' }, 'what goes with the prompt')
end

return tests
