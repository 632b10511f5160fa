--- Setting up a model: a provider or a server of this machine, a key, a trial request, a profile.
---
--- Rule: the server has the list of providers and keeps the profile; a key that is typed goes to it alone, in the request of
--- its trial and when it is kept, and into no history, register or message. Nothing is kept before a model has answered or the
--- user wants it all the same.

local line = require('kode.render').line

---@class kode.SetupDraft
---@field provider kode.SetupProvider
---@field options? table<string, string>
---@field key? kode.SetupKey
---@field model? string

---@class kode.ModelOffer
---@field text string One line.
---@field provider kode.SetupProvider
---@field model? string The model of a server of this machine.

local M = {}

--- Counts the setups: the answers to an abandoned one are not used.
local newest = 0

---@param message string
---@param level? integer
local function say(message, level)
  vim.notify('kode: ' .. message, level or vim.log.levels.INFO)
end

--- The facts that a server reports of a model.
---@param model kode.ServedModel
---@return string[]
local function facts(model)
  local list = {} ---@type string[]
  if model.contextWindow then
    list[#list + 1] = ('%d tokens'):format(model.contextWindow)
  end
  if model.tools == false then
    list[#list + 1] = 'no tools'
  end
  if model.images then
    list[#list + 1] = 'images'
  end
  if model.loaded then
    list[#list + 1] = 'loaded'
  end
  return list
end

--- Models of this machine and keys of the environment that no profile uses yet.
---@param providers kode.SetupProvider[]
---@param servers kode.ModelServer[]
---@return kode.ModelOffer[]
local function found(providers, servers)
  local offers, by_id = {}, {} ---@type kode.ModelOffer[], table<string, kode.SetupProvider>
  for _, provider in ipairs(providers) do
    by_id[provider.id] = provider
    if provider.keyIsSet and not provider.inUse then
      offers[#offers + 1] = { text = ('%s  (%s is set)'):format(line(provider.label), provider.keyVariable), provider = provider }
    end
  end
  for _, server in ipairs(servers) do
    for _, model in ipairs(server.models) do
      if not model.profile and by_id[server.provider] then
        local about = table.concat(vim.list_extend({ line(server.label) }, facts(model)), ', ')
        offers[#offers + 1] = {
          text = ('%s  (%s, on this machine)'):format(line(model.name), about),
          provider = by_id[server.provider],
          model = model.name,
        }
      end
    end
  end
  return offers
end

--- Asks the server for the providers and for the models of this machine.
---@param connection kode.Connection
---@param done fun(providers: kode.SetupProvider[], offers: kode.ModelOffer[])
local function look(connection, done)
  connection:ask('agent/setup/providers', {}, function(listed)
    connection:ask('agent/models/discover', {}, function(discovered)
      done(listed.providers, found(listed.providers, discovered.servers))
    end)
  end)
end

--- Gives the models that could be set up at once: those of this machine, and those whose key is in the environment.
---@param connection kode.Connection
---@param done fun(offers: kode.ModelOffer[])
function M.offers(connection, done)
  look(connection, function(_, offers)
    done(offers)
  end)
end

--- A name that no profile has.
---@param connection kode.Connection
---@param provider kode.SetupProvider
---@return string
local function free_name(connection, provider)
  local taken = require('kode.models').names(connection)
  local name, number = provider.id, 1
  while vim.list_contains(taken, name) do
    number = number + 1
    name = ('%s-%d'):format(provider.id, number)
  end
  return name
end

---@param draft kode.SetupDraft
---@return kode.SetupChoice
local function choice_of(draft)
  return { provider = draft.provider.id, model = draft.model, key = draft.key, options = draft.options }
end

--- Keeps a choice as a profile.
---@param connection kode.Connection
---@param draft kode.SetupDraft
---@param done fun(profile: string)
local function keep(connection, draft, done)
  connection:ask('agent/models/list', {}, function(listed)
    require('kode.models').remember(connection, listed)
    local params = {
      choice = choice_of(draft),
      name = free_name(connection, draft.provider),
      main = not listed.usable,
    }
    connection:ask('agent/setup/save', params, function(saved)
      require('kode.models').refresh(connection)
      say(('%s is kept in %s as the profile %s'):format(line(draft.model or ''), saved.file, saved.profile))
      done(saved.profile)
    end)
  end)
end

--- Lets the user choose one of the models that a server lists; one that lists none has the model named.
---@param provider kode.SetupProvider
---@param models kode.ServedModel[]
---@param answered? string
---@param choose fun(model: string)
local function choose_model(provider, models, answered, choose)
  if #models == 0 then
    return vim.ui.input({ prompt = ('Model of %s: '):format(line(provider.label)), default = answered }, function(name)
      if name and vim.trim(name) ~= '' then
        choose(vim.trim(name))
      end
    end)
  end
  -- The model that answered is the first, so that Enter takes it.
  local ordered = vim.tbl_filter(function(model)
    return model.name ~= answered
  end, models)
  if #ordered < #models then
    table.insert(ordered, 1, { name = answered, answered = true })
  end
  require('kode.picker').open({
    title = ('Model of %s'):format(line(provider.label)),
    items = ordered,
    format = function(model)
      local about = model.answered and { 'answered' } or facts(model)
      return #about == 0 and line(model.name) or ('%s  (%s)'):format(line(model.name), table.concat(about, ', '))
    end,
    choose = function(model)
      choose(model.name)
    end,
  })
end

--- Asks for the further options of a provider, one after the other; empty ones are left out.
---@param draft kode.SetupDraft
---@param done fun()
local function ask_options(draft, done)
  draft.options = vim.empty_dict() --[[@as table<string, string>]]
  local fields = draft.provider.fields or {}
  local function next_field(index)
    local field = fields[index]
    if not field then
      return done()
    end
    local about = field.required and '' or ', may be empty'
    local prompt = ('%s (for example %s%s): '):format(line(field.label), line(field.example or ''), about)
    vim.ui.input({ prompt = prompt }, function(value)
      if value == nil or (field.required and vim.trim(value) == '') then
        return say(('%s needs its %s'):format(line(draft.provider.label), field.label:lower()), vim.log.levels.WARN)
      end
      if vim.trim(value) ~= '' then
        draft.options[field.name] = vim.trim(value)
      end
      next_field(index + 1)
    end)
  end
  next_field(1)
end

--- The sources of a key that a provider can have.
---@param provider kode.SetupProvider
---@return { text: string, source: "none"|"value"|"variable"|"command" }[]
local function key_sources(provider)
  local sources = {} ---@type { text: string, source: "none"|"value"|"variable"|"command" }[]
  if provider.keyIsSet then
    sources[1] = { text = ('Use %s of the environment'):format(provider.keyVariable), source = 'none' }
  elseif not provider.needsKey then
    sources[1] = { text = 'No key', source = 'none' }
  end
  return vim.list_extend(sources, {
    { text = 'Enter a key, which is kept in a file that only you can read', source = 'value' },
    { text = 'Name a variable of the environment', source = 'variable' },
    { text = 'Name a command that prints the key', source = 'command' },
  })
end

--- Asks for the key of a provider, or where it comes from.
---@param draft kode.SetupDraft
---@param done fun()
local function ask_key(draft, done)
  local provider = draft.provider
  if not provider.needsKey and provider.baseUrl then
    -- A server of this machine.
    draft.key = { type = 'none' }
    return done()
  end
  local title = ('Key of %s'):format(line(provider.label))
  require('kode.picker').open({
    title = provider.keyPage and ('%s (%s)'):format(title, provider.keyPage) or title,
    items = key_sources(provider),
    format = function(item)
      return item.text
    end,
    choose = function(item)
      if item.source == 'none' then
        draft.key = { type = 'none' }
        return done()
      elseif item.source == 'value' then
        local value = vim.trim(vim.fn.inputsecret(title .. ': '))
        vim.cmd.redraw()
        if value == '' then
          return say('no key was entered', vim.log.levels.WARN)
        end
        draft.key = { type = 'value', value = value }
        return done()
      end
      local field = item.source == 'variable' and 'name' or 'command'
      vim.ui.input({ prompt = item.source == 'variable' and 'Variable: ' or 'Command: ' }, function(value)
        if value and vim.trim(value) ~= '' then
          draft.key = { type = item.source, [field] = vim.trim(value) }
          done()
        end
      end)
    end,
  })
end

local try ---@type fun(connection: kode.Connection, draft: kode.SetupDraft, done: fun(profile: string))

--- Says why a model did not answer, and what can be changed.
---@param connection kode.Connection
---@param draft kode.SetupDraft
---@param trial kode.SetupTrialResult
---@param done fun(profile: string)
local function after_failure(connection, draft, trial, done)
  local problem = trial.problem or { message = '', hint = '' }
  local lines = { ('%s did not answer:'):format(line(draft.provider.label)), problem.message, problem.hint }
  say(table.concat(lines, ' '), vim.log.levels.ERROR)
  local acts = {} ---@type { text: string, run: fun() }[]
  if draft.provider.needsKey or not draft.provider.baseUrl then
    acts[#acts + 1] = {
      text = 'Enter the key again',
      run = function()
        draft.key = nil
        try(connection, draft, done)
      end,
    }
  end
  acts[#acts + 1] = {
    text = 'Choose a model',
    run = function()
      choose_model(draft.provider, trial.models or {}, nil, function(model)
        draft.model = model
        try(connection, draft, done)
      end)
    end,
  }
  if #(draft.provider.fields or {}) > 0 then
    acts[#acts + 1] = {
      text = 'Change the options',
      run = function()
        draft.options = nil
        try(connection, draft, done)
      end,
    }
  end
  if draft.model then
    acts[#acts + 1] = {
      text = 'Keep it anyway',
      run = function()
        keep(connection, draft, done)
      end,
    }
  end
  require('kode.picker').open({
    title = 'The trial failed',
    items = acts,
    about = { lines = lines },
    format = function(act)
      return act.text
    end,
    choose = function(act)
      act.run()
    end,
  })
end

--- Sends the trial request of a complete choice.
---@param connection kode.Connection
---@param draft kode.SetupDraft
---@param done fun(profile: string)
local function request(connection, draft, done)
  newest = newest + 1
  local number = newest
  say(('asking %s for one word; :Kode setup starts over'):format(line(draft.model or draft.provider.label)))
  connection:ask('agent/setup/try', choice_of(draft), function(trial)
    if number ~= newest then
      return
    elseif not trial.ok then
      return after_failure(connection, draft, trial, done)
    elseif draft.model then
      return keep(connection, draft, done)
    end
    choose_model(draft.provider, trial.models or {}, trial.model, function(model)
      draft.model = model
      keep(connection, draft, done)
    end)
  end)
end

--- Asks for the missing parts of a choice, tries it, and keeps it.
function try(connection, draft, done)
  if not draft.options then
    return ask_options(draft, function()
      try(connection, draft, done)
    end)
  elseif not draft.key then
    return ask_key(draft, function()
      try(connection, draft, done)
    end)
  end
  request(connection, draft, done)
end

--- Makes a profile of an offer and gives its name.
---@param connection kode.Connection
---@param offer kode.ModelOffer
---@param done fun(profile: string)
function M.take(connection, offer, done)
  -- A key of the environment, or a server of this machine, which wants none.
  try(connection, { provider = offer.provider, model = offer.model, options = vim.empty_dict(), key = { type = 'none' } }, done)
end

--- Lets the user choose a provider or a server of this machine, and sets a model of it up.
---@param connection kode.Connection
---@param done fun(profile: string)
function M.run(connection, done)
  look(connection, function(providers, offers)
    local items = vim.list_extend({}, offers)
    for _, provider in ipairs(providers) do
      local is_local = not provider.needsKey and provider.baseUrl
      local about = provider.keyIsSet and ('%s is set'):format(provider.keyVariable) or is_local and 'on this machine, no key'
      items[#items + 1] = {
        text = about and ('%s  (%s)'):format(line(provider.label), about) or line(provider.label),
        provider = provider,
        is_new = true,
      }
    end
    require('kode.picker').open({
      title = 'Set up a model',
      items = items,
      format = function(item)
        return item.text
      end,
      choose = function(item)
        if item.is_new then
          return try(connection, { provider = item.provider }, done)
        end
        M.take(connection, item, done)
      end,
    })
  end)
end

return M
