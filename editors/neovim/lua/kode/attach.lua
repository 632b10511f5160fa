--- Files and pictures that go with a prompt.
---
--- Rule: a picture is read here, because the server is given its bytes; any other file is only named, and the server reads
--- it when the turn begins. A clipboard is asked through a program that the machine has, and nothing waits for it.

local M = {}

--- The server takes no larger picture.
local MAX_PICTURE = 5 * 1024 * 1024
--- Milliseconds that a clipboard may take.
local CLIPBOARD_LIMIT = 5000

--- How the pictures begin that models can look at.
local pictures = {
  { media = 'image/png', pattern = '^\137PNG\r\n\26\n' },
  { media = 'image/jpeg', pattern = '^\255\216\255' },
  { media = 'image/gif', pattern = '^GIF8[79]a' },
  { media = 'image/webp', pattern = '^RIFF....WEBP' },
}

--- The programs that give the picture in the clipboard, and the variable without which they cannot.
---@type { variable: string, program: string, arguments: string[] }[]
local clipboards = {
  { variable = 'WAYLAND_DISPLAY', program = 'wl-paste', arguments = { '--no-newline', '--type', 'image/png' } },
  { variable = 'DISPLAY', program = 'xclip', arguments = { '-selection', 'clipboard', '-target', 'image/png', '-out' } },
  { variable = 'HOME', program = 'pngpaste', arguments = { '-' } },
}

---@param bytes string
---@return kode.InputPart? part
---@return string? problem
local function picture(bytes)
  for _, kind in ipairs(pictures) do
    if bytes:find(kind.pattern) then
      if #bytes > MAX_PICTURE then
        return nil, ('the picture has %.1f MiB, and 5 MiB are the most'):format(#bytes / 1024 / 1024)
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
    -- The first bytes say what it is; only a picture is read whole, and of a large one only as much as shows that it is.
    local head = file:read(16) or ''
    local part
    part, problem = picture(head)
    if part then
      part, problem = picture(head .. (file:read(MAX_PICTURE) or ''))
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

--- The picture in the clipboard as a part of a prompt.
---@param callback fun(part?: kode.InputPart, problem?: string)
function M.clipboard(callback)
  local cmd = clipboard()
  if not cmd then
    return callback(nil, 'no program gives the clipboard: install wl-clipboard (Wayland), xclip (X11) or pngpaste (macOS)')
  end
  vim.system(cmd, { text = false, timeout = CLIPBOARD_LIMIT }, function(result)
    vim.schedule(function()
      local part, problem = picture(result.stdout or '')
      if not part and not problem then
        local said = vim.trim(result.stderr or '')
        problem = ('there is no picture in the clipboard (%s%s)'):format(cmd[1], said ~= '' and ': ' .. said or '')
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
    return ('text, %d lines'):format(select(2, part.text:gsub('\n', '')) + 1)
  end,
}

--- What a part of a prompt is called, for people.
---@param part kode.InputPart
---@return string
function M.label(part)
  local label = labels[part.type]
  local ok, text = pcall(label or tostring, part)
  return label and ok and text or part.type
end

return M
