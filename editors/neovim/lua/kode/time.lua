--- Timestamps of the protocol as people read them.
---
--- Rule: the server sends UTC; the shown time is that of the user's own clock.

local M = {}

--- Days from 1970-01-01 to a day of the Gregorian calendar.
---@param year integer
---@param month integer
---@param day integer
---@return integer
local function days(year, month, day)
  -- A year that begins in March ends with the day that is sometimes there.
  local shifted = month <= 2 and year - 1 or year
  local era = math.floor(shifted / 400)
  local of_era = shifted - era * 400
  local of_year = math.floor((153 * (month + (month > 2 and -3 or 9)) + 2) / 5) + day - 1
  return era * 146097 + of_era * 365 + math.floor(of_era / 4) - math.floor(of_era / 100) + of_year - 719468
end

--- Seconds since 1970 of a timestamp such as `2026-01-31T12:00:00.5Z`; nil for another form.
---@param timestamp? string
---@return number?
function M.seconds(timestamp)
  local year, month, day, hour, minute, second = (timestamp or ''):match('^(%d+)-(%d+)-(%d+)T(%d+):(%d+):([%d.]+)Z$')
  if not year then
    return nil
  end
  local date = days(tonumber(year) --[[@as integer]], tonumber(month) --[[@as integer]], tonumber(day) --[[@as integer]])
  return date * 86400 + hour * 3600 + minute * 60 + tonumber(second)
end

--- The local date and minute, `2026-01-31 13:00`.
---@param timestamp string
---@return string
function M.minute(timestamp)
  local seconds = M.seconds(timestamp)
  return seconds and os.date('%Y-%m-%d %H:%M', math.floor(seconds)) --[[@as string]] or timestamp
end

--- The time between two timestamps: `350 ms`, `4.2 s`, `3 min 10 s`; nil where one is missing.
---@param from? string
---@param to? string
---@return string?
function M.duration(from, to)
  local first, last = M.seconds(from), M.seconds(to)
  if not first or not last then
    return nil
  end
  return M.span(math.max(last - first, 0))
end

--- A time span in words: `350 ms`, `4.2 s`, `3 min 10 s`.
---@param took number Seconds.
---@return string
function M.span(took)
  if took < 1 then
    return ('%d ms'):format(took * 1000)
  elseif took < 60 then
    return ('%.1f s'):format(took)
  end
  return ('%d min %d s'):format(took / 60, took % 60)
end

return M
