-- Of the suspects that are due, by now or later than `longest` ms from now, the one with the fewest crashes, of those the oldest: what load gives of it, and behind it
-- its crashes, its place, its id, and how many are due. Where `hold` is over 0 it is due again after so many ms.
local ids = call('ZRANGEBYSCORE', base .. 'u', '-inf', now, 'LIMIT', 0, 1000)
for _, id in ipairs(call('ZRANGEBYSCORE', base .. 'u', string.format('(%.0f', now + asked.longest), '+inf', 'LIMIT', 0, 1000)) do ids[#ids + 1] = id end
if #ids == 0 then return { now, 0, {}, {}, {}, 0, '0', '', 0 } end
local names, best = {}, nil
for i, id in ipairs(ids) do names[i] = 'r:' .. id end
for i, row in ipairs(rowsOf(names)) do
  local one = { id = ids[i], crashes = row and headOf(row)[CRASHES] or 0, place = 0 }
  for _, list in ipairs({ 'q', 'l' }) do
    one.place = tonumber(call('ZSCORE', base .. list, one.id) or one.place)
  end
  if not best or one.crashes < best.crashes or (one.crashes == best.crashes and one.place < best.place) then best = one end
end
local place = string.format('%.0f', best.place)
if asked.hold == 0 then return { now, 0, {}, {}, {}, best.crashes, place, best.id, #ids } end
call('ZADD', base .. 'u', now + asked.hold, best.id)
return { now, 0, look({ 'r:' .. best.id }), {}, bodiesOf({ best.id }), best.crashes, place, best.id, #ids }
