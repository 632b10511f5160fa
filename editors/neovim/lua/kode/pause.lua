--- A coroutine that waits for what comes by a callback.
---
--- Rule: a pause ends once. What comes after that, or after it was closed, resumes nothing.

---@class kode.Pause
---@field private thread thread
---@field private is_over boolean
local Pause = {}
Pause.__index = Pause

--- A pause of the coroutine that runs.
---@return kode.Pause
function Pause.new()
  local thread = assert(coroutine.running(), 'a handler of the client runs in a coroutine')
  return setmetatable({ thread = thread, is_over = false }, Pause)
end

--- Ends the pause, from any context.
function Pause:resume()
  vim.schedule(function()
    if not self.is_over then
      self.is_over = true
      coroutine.resume(self.thread)
    end
  end)
end

--- Waits for the end of the pause, in its own coroutine.
function Pause:wait()
  assert(coroutine.running() == self.thread, 'a pause is for one coroutine')
  ---@diagnostic disable-next-line: await-in-sync
  coroutine.yield()
end

--- Makes the pause end without a resumption.
function Pause:close()
  self.is_over = true
end

return Pause
