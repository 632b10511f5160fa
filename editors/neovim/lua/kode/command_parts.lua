--- The sub-commands of `:Kode` about what goes with a prompt.
---
--- Rule: nothing is sent by them; it waits for the prompt, and is shown until then.

local surface_of = require('kode.surface')
local say = require('kode.command_common').say

---@param surface kode.Surface
---@param part? kode.InputPart
---@param problem? string
local function attach(surface, part, problem)
  if not part then
    return vim.notify('kode: ' .. problem, vim.log.levels.ERROR)
  end
  surface:attach(part)
  say(('%s goes with the next prompt'):format(require('kode.attach').label(part)))
end

---@type table<string, kode.SubCommand>
local commands = {}

commands.attach = {
  text = 'let a file or picture go with the next prompt',
  complete = function(words)
    return vim.fn.getcompletion(words[#words], 'file')
  end,
  run = function(call)
    if call.text == '' then
      return say('which file? :Kode paste takes the picture in the clipboard')
    end
    surface_of.with(function(surface)
      attach(surface, require('kode.attach').file(call.text))
    end)
  end,
}

commands.paste = {
  text = 'let the picture in the clipboard go with the next prompt',
  run = function()
    surface_of.with(function(surface)
      require('kode.attach').clipboard(function(part, problem)
        attach(surface, part, problem)
      end)
    end)
  end,
}

commands.detach = {
  text = 'choose something that goes with the next prompt, and leave it out',
  run = function()
    surface_of.with(function(surface)
      require('kode.pick').select(surface.parts, 'Leave out', require('kode.attach').label, function(part)
        surface:detach(part)
      end)
    end)
  end,
}

return commands
