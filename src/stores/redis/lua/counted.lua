-- Of each list that has records: its name, how many, and the name and the row of the oldest. Reads only.
local out = {}
for _, list in ipairs({ 'q', 'l', 'k' }) do
  local name = 'r:' .. (call('ZRANGE', base .. list, 0, 0)[1] or '')
  local row = rowsOf({ name })[1]
  if row then
    for _, value in ipairs({ list, call('ZCARD', base .. list), name, row }) do out[#out + 1] = value end
  end
end
return out
