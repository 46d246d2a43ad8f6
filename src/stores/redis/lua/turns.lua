-- Rows of registrations that are due, the earliest first: names and rows in pairs, and when the next one comes due ('':
-- none is known to). Reads only. ARGV[1]  kind, max
local due = base .. 'd:' .. asked.kind
local names, out = {}, {}
for i, id in ipairs(call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, asked.max)) do names[i] = asked.kind .. ':' .. id end
for i, row in ipairs(rowsOf(names)) do
  if row then out[#out + 1], out[#out + 2] = names[i], row end
end
local later = call('ZRANGEBYSCORE', due, string.format('(%.0f', now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return { now, out, later[2] or '' }
