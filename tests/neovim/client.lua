--- The Neovim client of this repository, in a real Neovim with a real server and a scripted model.
---
--- Rule: a file in `client/` gives a table of tests, each a function of a world of its own; nothing is shared between two. A
--- test that cannot be done with this Neovim gives a text that says why, and is counted as left out.
---
--- Run it with `nvim --clean -l tests/neovim/client.lua [PATTERN]`; KODE_LS_BIN names the program if it is not the debug
--- build, KODE_LS_SCREENSHOTS a folder for the screens that tests keep.

local here = vim.fs.dirname(vim.fs.abspath(arg[0]))
package.path = vim.fs.joinpath(here, '?.lua') .. ';' .. package.path

local World = require('client.world')
assert(
  vim.fn.executable(World.program) == 1,
  World.program .. ' is not there: run `cargo build`, or set KODE_LS_BIN'
)

local pattern = arg[1] or ''
local passed, failed, left_out = 0, 0, 0
for name in vim.fs.dir(vim.fs.joinpath(here, 'client')) do
  local group = name:match('^(.*)_test%.lua$')
  for title, test in vim.spairs(group and require('client.' .. group .. '_test') or {}) do
    local full = ('%s: %s'):format(group, title)
    if full:find(pattern) then
      local world = World.new()
      local start = vim.uv.hrtime()
      local ok, problem = xpcall(test, debug.traceback, world)
      world:close()
      local took = (vim.uv.hrtime() - start) / 1e9
      if not ok then
        failed = failed + 1
        io.stdout:write(('FAIL %s\n%s\n'):format(full, problem))
      elseif type(problem) == 'string' then
        left_out = left_out + 1
        io.stdout:write(('left out: %s: %s\n'):format(full, problem))
      else
        passed = passed + 1
        io.stdout:write(('ok   %s (%.1f s)\n'):format(full, took))
      end
      io.stdout:flush()
    end
  end
end
local others = left_out > 0 and (', %d left out, see above'):format(left_out) or ''
io.stdout:write(('%d passed, %d failed%s\n'):format(passed, failed, others))
os.exit(failed == 0 and 0 or 1)
