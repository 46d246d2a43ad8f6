-- Rows of a list behind a place, oldest first: place, name and row of each. ARGV[1]  list, behind, limit
local out, skip = {}, 0
repeat
  local part = call('ZRANGEBYSCORE', base .. asked.list, '(' .. asked.behind, '+inf', 'WITHSCORES', 'LIMIT', skip, 100)
  local names = {}
  for i = 1, #part, 2 do names[#names + 1] = 'r:' .. part[i] end
  for i, row in ipairs(rowsOf(names)) do
    local expiresAt = row and headOf(row)[EXPIRES]
    if row and (expiresAt == 0 or expiresAt > now) and #out < 3 * asked.limit then
      out[#out + 1], out[#out + 2], out[#out + 3] = part[2 * i], names[i], row
    end
  end
  skip = skip + 100
until #part < 200 or #out >= 3 * asked.limit
return out
