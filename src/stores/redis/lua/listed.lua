-- Rows of registrations behind an id, by their ids: names and rows in pairs. Reads only. ARGV[1]  kind, list (false: all),
-- behind, limit
local out, behind = {}, '(' .. asked.behind
repeat
  local ids = call('ZRANGEBYLEX', base .. 'a:' .. asked.kind, behind, '+', 'LIMIT', 0, 200)
  local names = {}
  for i, id in ipairs(ids) do names[i], behind = asked.kind .. ':' .. id, '(' .. id end
  for i, row in ipairs(rowsOf(names)) do
    if row and (not asked.list or headOf(row)[LINK] == asked.list) and #out < 2 * asked.limit then
      out[#out + 1], out[#out + 2] = names[i], row
    end
  end
until #ids < 200 or #out >= 2 * asked.limit
return out
