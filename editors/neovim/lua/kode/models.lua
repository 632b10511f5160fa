--- The model profiles of a server, as far as the client knows them.
---
--- Rule: the server decides which model is used and whether it can be; this is a copy for drawing and completion.

local M = {}

---@type table<kode.Connection, kode.ModelInfo[]>
local known = setmetatable({}, { __mode = 'k' })

--- Keeps a list that the server has given.
---@param connection kode.Connection
---@param result kode.ListModelsResult
function M.remember(connection, result)
  known[connection] = result.models
  require('kode.status').changed()
end

--- Asks for the list again.
---@param connection kode.Connection
function M.refresh(connection)
  connection:request('agent/models/list', {}, function(problem, result)
    if not problem and type(result) == 'table' then
      M.remember(connection, result)
      require('kode.surface').models_changed(connection)
    end
  end)
end

--- The profile that a session uses; nil while it is not known.
---@param surface kode.Surface
---@return kode.ModelInfo?
function M.of(surface)
  for _, model in ipairs(known[surface.connection] or {}) do
    if model.name == surface.session.model then
      return model
    end
  end
end

--- Why the model of a session cannot be used; nil when it can, or when that is not known.
---@param surface kode.Surface
---@return kode.ModelProblem?
function M.problem(surface)
  local model = M.of(surface)
  return model and model.problem
end

--- The names of all profiles, for completion.
---@param connection? kode.Connection
---@return string[]
function M.names(connection)
  return vim.tbl_map(function(model)
    return model.name
  end, connection and known[connection] or {})
end

--- A profile in lines of Markdown.
---@param model kode.ModelInfo
---@return string[]
function M.lines(model)
  local render = require('kode.render')
  local lines = { '# ' .. render.line(model.name), '' }
  local function fact(name, value)
    if value then
      lines[#lines + 1] = ('- %s: %s'):format(name, render.line(tostring(value)))
    end
  end
  fact('model', model.model)
  fact('provider', model.provider)
  fact('host', model.host)
  fact('wire format', model.wire)
  fact('context window', ('%d tokens'):format(model.contextWindow))
  fact('longest answer', ('%d tokens'):format(model.maxTokens))
  fact('price', model.prices and ('$%.2f in, $%.2f out per million tokens'):format(model.prices.input, model.prices.output))
  fact('declared in', model.source)
  fact('fallback', model.fallback)
  if model.problem then
    vim.list_extend(lines, { '', '## Cannot be used', '', model.problem.message, model.problem.hint })
  end
  return lines
end

return M
