--- Modules of other plugins.
---
--- Rule: such a module is loaded only by code that runs because its plugin is there, and nothing is known of its types.

---@param name string
---@return any
return function(name)
  return require(name)
end
