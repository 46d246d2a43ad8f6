-- Ids of rows that are due later than `after` ms from now, at most `max`, the latest first, and of suspects. Reads only.
local after = string.format('(%.0f', now + asked.after)
local ids = call('ZREVRANGEBYSCORE', base .. 'd', '+inf', after, 'LIMIT', 0, asked.max)
for _, id in ipairs(call('ZREVRANGEBYSCORE', base .. 'u', '+inf', after, 'LIMIT', 0, asked.max)) do ids[#ids + 1] = id end
return { now, ids }
