--- Files and images attached to a prompt.
---
--- Rule: an image is read here and sent as bytes; any other file is only named, and the server reads it when the turn starts.
--- The clipboard is read by a program of the machine, without blocking.

local M = {}

--- The largest image that the server accepts, in bytes.
local MAX_IMAGE = 5 * 1024 * 1024
--- Milliseconds that the clipboard may take.
local CLIPBOARD_LIMIT = 5000

--- First bytes of the image formats that models accept.
local images = {
  { media = 'image/png', pattern = '^\137PNG\r\n\26\n' },
  { media = 'image/jpeg', pattern = '^\255\216\255' },
  { media = 'image/gif', pattern = '^GIF8[79]a' },
  { media = 'image/webp', pattern = '^RIFF....WEBP' },
}

--- The programs that print the image in the clipboard, and the variable that each needs.
---@type { variable: string, program: string, arguments: string[] }[]
local clipboards = {
  { variable = 'WAYLAND_DISPLAY', program = 'wl-paste', arguments = { '--no-newline', '--type', 'image/png' } },
  { variable = 'DISPLAY', program = 'xclip', arguments = { '-selection', 'clipboard', '-target', 'image/png', '-out' } },
  { variable = 'HOME', program = 'pngpaste', arguments = { '-' } },
}

---@param bytes string
---@return kode.InputPart? part
---@return string? problem
local function image(bytes)
  for _, kind in ipairs(images) do
    if bytes:find(kind.pattern) then
      if #bytes > MAX_IMAGE then
        return nil, ('the image has %.1f MiB; at most 5 MiB are accepted'):format(#bytes / 1024 / 1024)
      end
      return { type = 'image', mediaType = kind.media, data = vim.base64.encode(bytes) }
    end
  end
end

--- A file or folder as a part of a prompt.
---@param name string As the user writes it.
---@return kode.InputPart? part
---@return string? problem
function M.file(name)
  local path = vim.fs.abspath(vim.fs.normalize(name))
  local stat, problem = vim.uv.fs_stat(path)
  if not stat then
    return nil, problem
  end
  if stat.type == 'file' then
    local file = io.open(path, 'rb')
    if not file then
      return nil, ('%s cannot be read'):format(path)
    end
    -- The first bytes give the format. Only an image is read further, and at most one byte more than is accepted.
    local head = file:read(16) or ''
    local part
    part, problem = image(head)
    if part then
      part, problem = image(head .. (file:read(MAX_IMAGE) or ''))
    end
    file:close()
    if part or problem then
      return part, problem
    end
  end
  return { type = 'mention', uri = vim.uri_from_fname(path) }
end

---@return string[]?
local function clipboard()
  for _, candidate in ipairs(clipboards) do
    local is_here = (os.getenv(candidate.variable) or '') ~= ''
    if is_here and vim.fn.executable(candidate.program) == 1 then
      return vim.list_extend({ candidate.program }, candidate.arguments)
    end
  end
end

--- The image in the clipboard as a part of a prompt.
---@param callback fun(part?: kode.InputPart, problem?: string)
function M.clipboard(callback)
  local cmd = clipboard()
  if not cmd then
    return callback(nil, 'no program reads the clipboard: install wl-clipboard (Wayland), xclip (X11) or pngpaste (macOS)')
  end
  vim.system(cmd, { text = false, timeout = CLIPBOARD_LIMIT }, function(result)
    vim.schedule(function()
      local part, problem = image(result.stdout or '')
      if not part and not problem then
        local said = vim.trim(result.stderr or '')
        problem = ('no image in the clipboard (%s%s)'):format(cmd[1], said ~= '' and ': ' .. said or '')
      end
      callback(part, problem)
    end)
  end)
end

---@type table<string, fun(part: any): string>
local labels = {
  selection = function(part)
    local range = part.range
    local last = range['end'].character == 0 and range['end'].line or range['end'].line + 1
    return ('%s:%d-%d'):format(vim.fs.basename(vim.uri_to_fname(part.uri)), range.start.line + 1, last)
  end,
  mention = function(part)
    return vim.fs.basename(vim.uri_to_fname(part.uri))
  end,
  image = function(part)
    return ('%s, %d KiB'):format(part.mediaType:gsub('^image/', ''), math.ceil(#part.data * 3 / 4 / 1024))
  end,
  pasted = function(part)
    return 'text, ' .. require('kode.render').count(select(2, part.text:gsub('\n', '')) + 1, 'line')
  end,
}

--- The label of a part of a prompt.
---@param part kode.InputPart
---@return string
function M.label(part)
  local label = labels[part.type]
  local ok, text = pcall(label or tostring, part)
  return label and ok and text or part.type
end

return M
