--- The speed of answers and the provider's rate limits.
---
--- Rule: only figures that the provider stated are shown, and a limit whose reset has passed is not.

local line = require('kode.render').line

local M = {}

--- The used share from which a limit is shown unasked.
local TIGHT = 0.8

--- The limits that still count.
---@param session kode.Session
---@return kode.ProviderLimit[]
local function current(session)
  local now = os.time()
  return vim.tbl_filter(function(limit)
    local at = limit.resetsAt and require('kode.time').seconds(limit.resetsAt)
    return not at or at > now
  end, session.limits or {})
end

---@param limit kode.ProviderLimit
---@return integer
local function percent(limit)
  return math.floor(math.min(math.max(limit.used, 0), 1) * 100 + 0.5)
end

--- The most used limit in few words, where it is nearly used up.
---@param session kode.Session
---@return string?
function M.tightest(session)
  local most ---@type kode.ProviderLimit?
  for _, limit in ipairs(current(session)) do
    if limit.used >= TIGHT and (not most or limit.used > most.used) then
      most = limit
    end
  end
  return most and ('%s %d%% used'):format(line(most.name), percent(most))
end

--- All of it in lines.
---@param session kode.Session
---@return string[]
function M.lines(session)
  local lines = {} ---@type string[]
  if session.speed then
    lines[1] = ('speed of the last answer: %d tokens/s'):format(math.floor(session.speed + 0.5))
  end
  for _, limit in ipairs(current(session)) do
    local filled = math.floor(percent(limit) / 10 + 0.5)
    local bar = ('▮'):rep(filled) .. ('▯'):rep(10 - filled)
    local reset = limit.resetsAt and (', new at %s'):format(require('kode.time').minute(limit.resetsAt)) or ''
    lines[#lines + 1] = ('%s %s: %d %% used%s'):format(bar, line(limit.name), percent(limit), reset)
  end
  return lines
end

return M
