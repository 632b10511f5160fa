--- The windows of a conversation: where they open, and how they go away again.
---
--- Rule: windows open and close only when the user says so. A tab page shows one conversation, and the former windows
--- come back as they were.

local api = vim.api
local config = require('kode.config')

---@class kode.View
---@field surface kode.Surface
---@field layout string
---@field transcript integer
---@field prompt integer
---@field origin integer The window the user came from.
---@field replaced? integer The buffer that the transcript took the place of.

local M = {}

---@type table<integer, kode.View>
local views = {}

---@param view kode.View?
---@return boolean
local function is_open(view)
  return view ~= nil and api.nvim_win_is_valid(view.transcript)
end

--- The view of a tab page, the current one when none is named.
---@param tab? integer
---@return kode.View?
function M.view(tab)
  tab = tab or api.nvim_get_current_tabpage()
  local view = views[tab]
  if view and not is_open(view) then
    if api.nvim_win_is_valid(view.prompt) and #api.nvim_tabpage_list_wins(tab) > 1 then
      api.nvim_win_close(view.prompt, true)
    end
    views[tab] = nil
    return nil
  end
  return view
end

--- Whether some window of the current tab page shows a surface.
---@param surface kode.Surface
---@return boolean
function M.shows(surface)
  local view = M.view()
  return view ~= nil and view.surface == surface
end

---@param window integer
---@param bar string
---@param layout string
local function dress(window, bar, layout)
  local options = vim.wo[window][0]
  options.wrap = true
  options.linebreak = true
  options.breakindent = true
  options.number = false
  options.relativenumber = false
  options.signcolumn = 'no'
  options.foldcolumn = '0'
  options.foldmethod = 'manual'
  options.conceallevel = config.get().transcript.conceal and 2 or 0
  options.concealcursor = 'nvic'
  options.fillchars = (vim.o.fillchars ~= '' and vim.o.fillchars .. ',' or '') .. 'eob: '
  options.list = false
  options.spell = false
  options.winbar = bar
  -- A float would get a row more for it.
  if layout ~= 'float' then
    options.statusline = "%{%v:lua.require'kode.status'.window()%}"
  end
end

--- Columns that a conversation needs for a prompt to be read.
local MIN_WIDTH = 40
--- Rows of the screen that may go to the prompt, as a part.
local PROMPT_SHARE = 5

---@param share number
---@param of integer
---@return integer
local function size(share, of)
  local wanted = share < 1 and share * of or share
  local least = math.min(MIN_WIDTH, math.floor(of / 2))
  return math.floor(math.max(math.min(wanted, of - 10), least))
end

--- Rows of the prompt's window: fewer on a low screen.
---@return integer
local function prompt_height()
  return math.max(math.min(config.get().prompt_height, math.floor(vim.o.lines / PROMPT_SHARE)), 2)
end

---@type table<string, fun(transcript: integer, prompt: integer): integer, integer>
local layouts = {}

---@param window integer
---@param prompt integer
---@return integer
local function below(window, prompt)
  local opened = api.nvim_open_win(prompt, false, { split = 'below', win = window, height = prompt_height() })
  vim.wo[opened].winfixheight = true
  return opened
end

function layouts.split(transcript, prompt)
  local width = size(config.get().width, vim.o.columns)
  local window = api.nvim_open_win(transcript, false, { split = 'right', win = -1, width = width })
  vim.wo[window].winfixwidth = true
  return window, below(window, prompt)
end

function layouts.tab(transcript, prompt)
  vim.cmd.sbuffer({ args = { tostring(transcript) }, mods = { tab = vim.fn.tabpagenr() } })
  local window = api.nvim_get_current_win()
  return window, below(window, prompt)
end

function layouts.current(transcript, prompt)
  local window = api.nvim_get_current_win()
  api.nvim_win_set_buf(window, transcript)
  return window, below(window, prompt)
end

--- Where the two windows of the float are: the whole height of the screen, less the command line and four borders.
---@return vim.api.keyset.win_config upper
---@return vim.api.keyset.win_config lower
local function float_places()
  local share = config.get().width
  local width = math.min(size(share < 1 and math.max(share, 0.8) or share, vim.o.columns), vim.o.columns - 2)
  local low = prompt_height()
  local height = math.max(vim.o.lines - vim.o.cmdheight - low - 5, 3)
  local place = { relative = 'editor', width = width, col = math.floor((vim.o.columns - width) / 2), border = 'rounded' }
  return vim.tbl_extend('force', place, { row = 0, height = height, title = ' Kode ' }),
    vim.tbl_extend('force', place, { row = height + 2, height = low, title = ' Prompt ' })
end

function layouts.float(transcript, prompt)
  local upper, lower = float_places()
  return api.nvim_open_win(transcript, false, upper), api.nvim_open_win(prompt, false, lower)
end

--- Whether a layout of that name exists.
---@param name? string
---@return boolean
function M.is_layout(name)
  return name == nil or layouts[name] ~= nil
end

--- Shows a surface in the current tab page and goes to its prompt.
---@param surface kode.Surface
---@param layout? string
function M.open(surface, layout)
  local view = M.view()
  if view and (view.surface ~= surface or (layout and layout ~= view.layout)) then
    M.close()
    view = nil
  end
  local transcript, prompt = surface:buffers()
  if not view then
    layout = layout or config.get().layout
    local origin = api.nvim_get_current_win()
    local replaced = layout == 'current' and api.nvim_get_current_buf() or nil
    local upper, lower = layouts[layout](transcript, prompt)
    dress(upper, "%{%v:lua.require'kode.status'.winbar()%}", layout)
    dress(lower, "%{%v:lua.require'kode.status'.prompt_winbar()%}", layout)
    api.nvim_win_set_cursor(upper, { surface.transcript:last_row() + 1, 0 })
    ---@type kode.View
    local opened = {
      surface = surface,
      layout = layout --[[@as string]],
      transcript = upper,
      prompt = lower,
      origin = origin,
      replaced = replaced,
    }
    view = opened
    views[api.nvim_get_current_tabpage()] = view
    if layout == 'float' then
      require('kode.maps').float(view)
    end
    surface.transcript:resized()
  elseif not api.nvim_win_is_valid(view.prompt) then
    view.prompt = below(view.transcript, prompt)
    dress(view.prompt, "%{%v:lua.require'kode.status'.prompt_winbar()%}", view.layout)
  end
  api.nvim_set_current_win(view.prompt)
  if config.get().start_insert then
    vim.cmd.startinsert({ bang = true })
  end
end

---@param window integer
local function close_window(window)
  if not api.nvim_win_is_valid(window) then
    return
  end
  if #api.nvim_tabpage_list_wins(api.nvim_win_get_tabpage(window)) > 1 or #api.nvim_list_tabpages() > 1 then
    api.nvim_win_close(window, true)
  else
    vim.cmd.enew()
  end
end

--- Takes the view of the current tab page away.
function M.close()
  local tab = api.nvim_get_current_tabpage()
  local view = M.view(tab)
  if not view then
    return
  end
  views[tab] = nil
  local was_inside = vim.tbl_contains({ view.transcript, view.prompt }, api.nvim_get_current_win())
  if view.replaced and api.nvim_buf_is_valid(view.replaced) then
    api.nvim_win_set_buf(view.transcript, view.replaced)
  else
    close_window(view.transcript)
  end
  close_window(view.prompt)
  if was_inside and api.nvim_win_is_valid(view.origin) then
    api.nvim_set_current_win(view.origin)
  end
end

--- Goes to the transcript of a surface, which is opened where it is not.
---@param surface kode.Surface
function M.go_to_transcript(surface)
  local view = M.view()
  if not view or view.surface ~= surface then
    M.open(surface)
    view = assert(M.view())
  end
  vim.cmd.stopinsert()
  api.nvim_set_current_win(view.transcript)
end

--- Goes to the oldest prompt that waits for the user, where number keys answer it.
---@param surface kode.Surface
function M.go_to_question(surface)
  local row = surface:buffers() and surface.transcript:waiting_row()
  if not row then
    return vim.notify('kode: nothing waits for you', vim.log.levels.INFO)
  end
  M.go_to_transcript(surface)
  api.nvim_win_set_cursor(0, { row + 1, 0 })
end

api.nvim_create_autocmd({ 'VimResized', 'WinResized' }, {
  group = api.nvim_create_augroup('kode.layout', {}),
  desc = 'kode: fit the conversation to its windows',
  callback = function(event)
    for _, view in pairs(views) do
      if is_open(view) then
        if event.event == 'VimResized' and view.layout == 'float' and api.nvim_win_is_valid(view.prompt) then
          local upper, lower = float_places()
          api.nvim_win_set_config(view.transcript, upper)
          api.nvim_win_set_config(view.prompt, lower)
        end
        if view.surface.transcript then
          view.surface.transcript:resized()
        end
      end
    end
  end,
})

--- A window for a file, beside the conversation.
---@return integer
function M.work_window()
  local window = require('kode.context').window()
  if window then
    return window
  end
  local view = M.view()
  local beside = view and view.transcript or api.nvim_get_current_win()
  return api.nvim_open_win(api.nvim_create_buf(true, false), false, { split = 'left', win = beside })
end

return M
