--- Tables of Markdown with aligned columns.
---
--- Rule: the text stays as it was written; padding is virtual text, counted in cells of the screen. A table that does not fit
--- its window is not aligned, because padded rows would wrap.

local M = {}

---@class kode.Cell
---@field first integer The byte that it begins with, behind its bar.
---@field last integer The byte of the bar behind it.
---@field width integer Cells of the screen.

--- The text between the bars of a line; a bar behind a backslash is text.
---@param line string
---@return kode.Cell[]
local function cells(line)
  local list, first, from = {}, nil, 1
  while true do
    local bar = line:find('|', from, true)
    if not bar then
      return list
    end
    from = bar + 1
    if line:sub(bar - 1, bar - 1) ~= '\\' then
      if first then
        list[#list + 1] = { first = first, last = bar - 1, width = vim.fn.strdisplaywidth(line:sub(first + 1, bar - 1)) }
      end
      first = bar
    end
  end
end

--- The marks that align the columns of a table.
---@param lines string[] The lines of the table; the second has the dashes.
---@param row integer The row of the first.
---@param limit integer Cells that a row may take.
---@return kode.Mark[]
function M.marks(lines, row, limit)
  local rows = {} ---@type kode.Cell[][]
  local widths = {} ---@type integer[]
  for number, line in ipairs(lines) do
    rows[number] = cells(line)
    for column, cell in ipairs(rows[number]) do
      widths[column] = math.max(widths[column] or 0, cell.width) --[[@as integer]]
    end
  end
  local width = #widths + 1
  for _, one in ipairs(widths) do
    width = width + one
  end
  local dashes = {} ---@type string[]
  for column, cell in ipairs(rows[2] or {}) do
    dashes[column] = assert(lines[2]):sub(cell.first + 1, cell.last)
  end
  local marks = {}
  for number, row_cells in ipairs(width <= limit and rows or {}) do
    for column, cell in ipairs(row_cells) do
      local missing = assert(widths[column]) - cell.width --[[@as integer]]
      local below = dashes[column] or ''
      local is_right = below:find('%-:%s*$') ~= nil and not below:find('^%s*:')
      if missing > 0 then
        -- The dashes have a blank or a colon at their ends, which stays there.
        local at = number == 2 and cell.first + #below:match('^[%s:]*') or is_right and cell.first or cell.last
        marks[#marks + 1] = {
          row = row + number - 1,
          column = at,
          options = {
            virt_text = { { (number == 2 and '-' or ' '):rep(missing), number == 2 and 'KodeMeta' or nil } },
            virt_text_pos = 'inline',
            strict = false,
          },
        }
      end
    end
  end
  return marks
end

return M
