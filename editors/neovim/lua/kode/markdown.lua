--- Markdown of finished messages as marks.
---
--- Rule: a text is parsed once, when it is whole; the buffer it is shown in has no parser of its own, so that what streams
--- into it costs nothing here, however long it is.

local M = {}

--- Longer texts are shown without highlights.
local MAX_BYTES = 64 * 1024

--- Captures that are no highlights.
local silent = { spell = true, nospell = true, conceal = true, none = true }

---@class kode.MarkdownOptions
---@field width integer Cells that a line of a table may take.
---@field conceal boolean Whether markers are concealed.

--- The marks that align the tables below a node.
---@param root TSNode
---@param text string
---@param width integer
---@return kode.Mark[]
local function tables(root, text, width)
  local marks = {}
  for _, node in vim.treesitter.query.parse('markdown', '(pipe_table) @table'):iter_captures(root, text) do
    local lines = vim.split(vim.treesitter.get_node_text(node, text), '\n', { plain = true, trimempty = true })
    local row, column = node:start()
    -- In a list or a quote the lines begin elsewhere than the table.
    if column == 0 then
      vim.list_extend(marks, require('kode.tables').marks(lines, row, width))
    end
  end
  return marks
end

--- The highlights of a text and the alignment of its tables; none where there is no parser for Markdown.
---@param text string
---@param options kode.MarkdownOptions
---@return kode.Mark[]
function M.marks(text, options)
  if #text > MAX_BYTES or not vim.treesitter.language.add('markdown') then
    return {}
  end
  local parser = vim.treesitter.get_string_parser(text, 'markdown')
  parser:parse(true)
  local marks = {}
  parser:for_each_tree(function(tree, language_tree)
    local language = language_tree:lang()
    local query = vim.treesitter.query.get(language, 'highlights')
    if not query then
      return
    end
    if language == 'markdown' then
      vim.list_extend(marks, tables(tree:root(), text, options.width))
    end
    for id, node, metadata in query:iter_captures(tree:root(), text) do
      local capture = query.captures[id] --[[@as string]]
      local row, column, end_row, end_column = node:range()
      local concealed = options.conceal and (metadata.conceal or (metadata[id] or {}).conceal)
      -- The lines of fences stay: a concealed line would still take its row.
      if concealed and row == end_row and not capture:find('block') then
        marks[#marks + 1] = {
          row = row,
          column = column,
          options = { end_row = end_row, end_col = end_column, conceal = concealed, strict = false },
        }
      end
      if capture:sub(1, 1) ~= '_' and not silent[capture] then
        marks[#marks + 1] = {
          row = row,
          column = column,
          options = {
            end_row = end_row,
            end_col = end_column,
            hl_group = ('@%s.%s'):format(capture, language),
            priority = 100,
            strict = false,
          },
        }
      end
    end
  end)
  return marks
end

return M
