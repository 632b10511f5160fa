--- Tools of plugins for the model: registered with the server, run here.
---
--- Rule: a call comes only after the rules and the user have let it run. Tools are registered again with each server that starts,
--- and a tool that raises an error fails its call alone.

local Pause = require('kode.pause')

local M = {}

---@class kode.Tool
---@field name string
---@field description string The text for the model.
---@field input_schema table The JSON Schema of the arguments, of type "object"; an empty object is `vim.empty_dict()`.
---@field run fun(arguments: table, done: fun(text: string, is_error?: boolean)): fun()? Does the work, and calls `done` once,
---now or later. May return a function that cancels it.

---@type table<string, kode.Tool[]>
local providers = {}
--- The functions that cancel calls, by their ids.
---@type table<string, fun()>
local running = {}

---@param text string
---@return kode.CallToolResult
local function failure(text)
  return { content = { { type = 'text', text = text } }, isError = true }
end

---@param connection kode.Connection
---@param provider string
---@param tools kode.Tool[]
local function send(connection, provider, tools)
  local specs = vim.tbl_map(function(tool)
    return { name = tool.name, description = tool.description, inputSchema = tool.input_schema }
  end, tools)
  connection:dispatch('agent/tools/register', { provider = provider, tools = specs }, function(problem)
    if problem then
      vim.notify(('kode: the tools of %s are not registered: %s'):format(provider, problem.message), vim.log.levels.WARN)
    end
  end)
end

--- Registers all tools with a server.
---@param connection kode.Connection
function M.announce(connection)
  for provider, tools in pairs(providers) do
    send(connection, provider, tools)
  end
end

--- Replaces the tools of a provider; an empty list withdraws them.
---@param provider string
---@param tools kode.Tool[]
function M.register(provider, tools)
  providers[provider] = #tools > 0 and tools or nil
  for _, connection in pairs(require('kode.connection').all()) do
    if connection.status == 'ready' then
      send(connection, provider, tools)
    end
  end
end

---@param provider string
---@param name string
---@return kode.Tool?
local function find(provider, name)
  for _, tool in ipairs(providers[provider] or {}) do
    if tool.name == name then
      return tool
    end
  end
end

--- Carries out a call of the server, in the coroutine of its handler.
---@param params kode.CallToolParams
---@return kode.CallToolResult
function M.call(params)
  local tool = find(params.provider, params.name)
  if not tool then
    return failure(('%s has no tool %s any more'):format(params.provider, params.name))
  end
  local pause = Pause.new()
  local result ---@type kode.CallToolResult?
  local function done(text, is_error)
    if not result then
      result = { content = { { type = 'text', text = text } }, isError = is_error or false }
      pause:resume()
    end
  end
  local ok, cancel = pcall(tool.run, params.arguments, vim.schedule_wrap(done))
  if not ok then
    pause:close()
    return failure(tostring(cancel))
  end
  running[params.callId] = function()
    if cancel then
      cancel()
    end
    done('cancelled', true)
  end
  pause:wait()
  running[params.callId] = nil
  return assert(result)
end

--- Cancels a call that is over for the server.
---@param params kode.ToolCancelledParams
function M.cancel(params)
  local cancel = running[params.callId]
  if cancel then
    cancel()
  end
end

return M
