--- Choosing models, background commands, MCP servers, rules and trust requests.
---
--- Rule: the approved text is shown first, exactly as the server has it, and nothing that came later is approved with it.

local picker = require('kode.picker')
local render = require('kode.render')

local M = {}

local line = render.line

---@param message string
local function say(message)
  vim.notify('kode: ' .. message, vim.log.levels.INFO)
end

--- One line for a profile.
---@param surface kode.Surface
---@param model kode.ModelInfo
---@return string
local function model_line(surface, model)
  local mark = model.name == surface.session.model and '*' or ' '
  local problem = model.problem and ('  (%s)'):format(line(model.problem.message)) or ''
  return ('%s %s  %s, %s%s'):format(mark, model.name, model.model, model.provider, problem)
end

--- Lets the user choose a model profile, or a model of this machine that has none yet.
---@param surface kode.Surface
---@param choose fun(name: string)
function M.model(surface, choose)
  local connection, setup = surface.connection, require('kode.setup_model')
  connection:ask('agent/models/list', {}, function(result)
    require('kode.models').remember(connection, result)
    setup.offers(connection, function(offers)
      picker.open({
        title = 'Model',
        items = vim.list_extend(vim.list_slice(result.models), offers),
        format = function(item)
          return item.text and '  ' .. item.text or model_line(surface, item)
        end,
        preview = function(item, show)
          show({ lines = item.text and { item.text } or require('kode.models').lines(item), filetype = 'markdown' })
        end,
        choose = function(item)
          if item.text then
            return setup.take(connection, item, choose)
          end
          choose(item.name)
        end,
      })
    end)
  end)
end

--- Shows the commands in the background and their output, and stops the chosen one.
---@param surface kode.Surface
function M.tasks(surface)
  surface:ask('agent/tasks/list', {}, function(result)
    picker.open({
      title = 'Background commands',
      items = result.tasks,
      format = function(task)
        local state = task['end'] and 'ended' or 'running'
        return ('%s  %s (%s)'):format(require('kode.time').minute(task.startedAt), line(task.title), state)
      end,
      preview = function(task, show)
        M.task_output(surface, task, function(lines)
          show({ lines = lines })
        end)
      end,
      verb = 'Show the output',
      choose = function(task)
        M.task_output(surface, task, function(lines)
          require('kode.scratch').float(lines, { title = line(task.title) })
        end)
      end,
      actions = {
        {
          key = '<C-x>',
          label = 'Stop',
          act = function(task)
            surface:ask('agent/tasks/stop', { taskId = task.taskId })
          end,
        },
      },
    })
  end)
end

--- Reads the first page of a background command's output.
---@param surface kode.Surface
---@param task kode.BackgroundTask
---@param show fun(lines: string[])
function M.task_output(surface, task, show)
  local params = { sessionId = surface.session.id, taskId = task.taskId }
  surface.connection:request('agent/output/read', params, function(problem, page)
    if problem then
      return show({ problem.message })
    end
    local lines = render.lines(page.text)
    if page.nextOffset < page.totalBytes then
      lines[#lines + 1] = ('… %d more bytes'):format(page.totalBytes - page.nextOffset)
    end
    show(lines)
  end)
end

---@param source kode.RuleSource
---@return string
local function place(source)
  return source.file and ('%s:%s'):format(source.file, source.line or '?') or source.layer
end

---@param requests kode.PendingTrust[]
---@return string[]
local function trust_lines(requests)
  local lines = {} ---@type string[]
  for _, request in ipairs(requests) do
    lines[#lines + 1] = ('%s in %s'):format(request.key, place(request.source))
    vim.list_extend(lines, render.lines(render.exact(request.text)))
    lines[#lines + 1] = ''
  end
  return lines
end

---@param surface kode.Surface
---@param requests kode.PendingTrust[]
local function decide_trust(surface, requests)
  local digests = vim.tbl_map(function(request)
    return request.digest
  end, requests)
  local what = #requests == 1 and 'this' or ('these %d'):format(#requests)
  local answers = {
    { label = 'Not now', method = 'agent/trust/dismiss' },
    { label = ('Approve exactly %s'):format(what), method = 'agent/trust/approve' },
  }
  picker.open({
    title = ('Approve %s?'):format(#requests == 1 and line(requests[1].key) or render.count(#requests, 'request')),
    items = answers,
    format = function(answer)
      return answer.label
    end,
    about = { lines = trust_lines(requests) },
    choose = function(answer)
      surface:ask(answer.method, { digests = digests }, function(done)
        local changed = type(done) == 'table' and done.changed or 0
        say(changed > 0 and ('approved %s'):format(render.count(changed, 'request')) or 'nothing was approved')
      end)
    end,
  })
end

--- Shows the trust requests of the workspace's files, and approves one or all of them.
---@param surface kode.Surface
function M.trust(surface)
  surface:ask('agent/trust/list', {}, function(result)
    if #result.waiting == 0 then
      return say('no file of the workspace waits for approval')
    end
    local entries = {} ---@type kode.PendingTrust[][]
    if #result.waiting > 1 then
      entries[1] = result.waiting
    end
    for _, request in ipairs(result.waiting) do
      entries[#entries + 1] = { request }
    end
    picker.open({
      title = 'Files of the workspace ask for approval',
      items = entries,
      format = function(requests)
        if #requests > 1 then
          return ('All %d, one by one in the preview'):format(#requests)
        end
        local request = requests[1]
        local note = request.dismissed and ' (not now)' or request.earlier and ' (changed since you approved it)' or ''
        return ('%s %s  %s%s'):format(request.key, line(request.text), place(request.source), note)
      end,
      preview = function(requests, show)
        show({ lines = trust_lines(requests) })
      end,
      choose = function(requests)
        decide_trust(surface, requests)
      end,
    })
  end)
end

---@param server kode.McpServer
---@return string[]
local function server_lines(server)
  local lines = { '# ' .. line(server.title or server.name), '' }
  local function fact(name, value)
    if value then
      lines[#lines + 1] = ('- %s: %s'):format(name, value)
    end
  end
  fact('state', server.state)
  fact('transport', server.transport)
  fact('target', server.target and line(server.target))
  fact('declared in', place(server.source))
  fact('tools', server.tools)
  fact('prompts', server.prompts)
  fact('resources', server.resources)
  if server.failure then
    vim.list_extend(lines, { '', '## Failure', '', line(server.failure.message), line(server.failure.hint) })
    if server.failure.stderr then
      vim.list_extend(lines, { '', '```' })
      vim.list_extend(lines, render.lines(render.exact(server.failure.stderr)))
      lines[#lines + 1] = '```'
    end
  end
  vim.list_extend(lines, vim.tbl_map(line, server.notes or {}))
  return lines
end

--- Lists the tools of an MCP server; choosing one switches it off by a deny rule of the user, or on again.
---@param surface kode.Surface
---@param server kode.McpServer
local function mcp_tools(surface, server)
  surface:ask('agent/permission/rules', {}, function(ruled)
    local off = {} ---@type table<string, kode.RuleEntry>
    for _, rule in ipairs(ruled.rules) do
      if rule.behavior == 'deny' then
        off[rule.rule] = rule
      end
    end
    surface:ask('agent/mcp/tools', { server = server.name }, function(result)
      picker.open({
        title = ('Tools of %s; choosing one switches it'):format(line(server.name)),
        items = result.tools,
        format = function(tool)
          return ('%s %s'):format(off[tool.name] and 'off' or 'on ', line(tool.title))
        end,
        preview = function(tool, show)
          show({ lines = vim.split(tool.description, '\n') })
        end,
        choose = function(tool)
          local rule = off[tool.name]
          if not rule then
            local params = { scope = 'user', behavior = 'deny', rule = tool.name }
            return surface:ask('agent/permission/addRule', params, function(added)
              say(('%s is off, by a rule in %s'):format(line(tool.title), added.file))
            end)
          elseif not rule.source.file then
            return say(('%s is off by a rule that is in no file'):format(line(tool.title)))
          end
          local params = { file = rule.source.file, behavior = 'deny', rule = tool.name }
          surface:ask('agent/permission/removeRule', params, function()
            say(('%s is on'):format(line(tool.title)))
          end)
        end,
      })
    end)
  end)
end

--- Shows the MCP servers, and connects, enables, disables or signs in to the chosen one.
---@param surface kode.Surface
function M.mcp(surface)
  local function request(method)
    return function(server)
      surface:ask(method, { server = server.name }, function(answer)
        -- The page belongs to a third-party server: the user opens it, or does not.
        local address = type(answer) == 'table' and answer.url
        say(address and 'sign in at ' .. line(address) or ('%s: requested'):format(line(server.name)))
      end)
    end
  end
  surface:ask('agent/mcp/list', {}, function(result)
    if result.leftOut then
      vim.notify('kode: ' .. line(result.leftOut), vim.log.levels.WARN)
    end
    picker.open({
      title = 'MCP servers',
      items = result.servers,
      format = function(server)
        local state = server.failure and ('%s: %s'):format(server.state, line(server.failure.message)) or server.state
        return ('%s  %s, %s'):format(line(server.name), state, render.count(server.tools, 'tool'))
      end,
      preview = function(server, show)
        show({ lines = server_lines(server), filetype = 'markdown' })
      end,
      verb = 'Reconnect',
      choose = request('agent/mcp/reconnect'),
      actions = {
        { key = '<C-e>', label = 'Enable', act = request('agent/mcp/enable') },
        { key = '<C-x>', label = 'Disable', act = request('agent/mcp/disable') },
        { key = '<C-y>', label = 'Sign in', act = request('agent/mcp/authenticate') },
        {
          key = '<C-t>',
          label = 'Tools',
          act = function(server)
            mcp_tools(surface, server)
          end,
        },
      },
    })
  end)
end

--- Shows the rules in force, and removes the chosen one.
---@param surface kode.Surface
function M.rules(surface)
  surface:ask('agent/permission/rules', {}, function(result)
    picker.open({
      title = ('Rules (mode %s); choosing one removes it'):format(result.mode),
      items = result.rules,
      format = function(entry)
        return ('%s %s  %s'):format(entry.behavior, line(entry.rule), place(entry.source))
      end,
      choose = function(entry)
        if not entry.source.file then
          return vim.notify('kode: this rule is in no file and cannot be removed', vim.log.levels.WARN)
        end
        surface:ask('agent/permission/removeRule', {
          file = entry.source.file,
          behavior = entry.behavior,
          rule = entry.rule,
        }, function(removed)
          say(removed.removed and 'the rule was removed' or 'the rule is not in its file any more')
        end)
      end,
    })
  end)
end

return M
