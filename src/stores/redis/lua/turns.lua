-- Rows of registrations that are due, the earliest first: names and rows in pairs. What would come due later than `longest`
-- ms from now is due too, last. Reads only. ARGV[1]  kind, max
local due = base .. 'd:' .. asked.kind
local names, out = {}, {}
local far = string.format('(%.0f', now + asked.longest)
for _, range in ipairs({ { '-inf', now }, { far, '+inf' } }) do
  for _, id in ipairs(call('ZRANGEBYSCORE', due, range[1], range[2], 'LIMIT', 0, asked.max - #names)) do
    names[#names + 1] = asked.kind .. ':' .. id
  end
end
for i, row in ipairs(rowsOf(names)) do
  if row then out[#out + 1], out[#out + 2] = names[i], row end
end
return out
