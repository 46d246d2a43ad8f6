-- The `max` that have been due for longest, of those the oldest, and last those that would come due later than `longest` ms
-- from now; they are due again after `hold` ms. Of as many more it is
-- seen which are older: more than come due in one millisecond. Behind what load gives their ids and when they came due.
local found = call('ZRANGEBYSCORE', base .. 'd', '-inf', now, 'WITHSCORES', 'LIMIT', 0, asked.max + 64)
if #found < 2 * asked.max then
  local far = string.format('(%.0f', now + asked.longest)
  for _, one in ipairs(call('ZRANGEBYSCORE', base .. 'd', far, '+inf', 'WITHSCORES', 'LIMIT', 0, asked.max)) do found[#found + 1] = one end
end
local due, ids, names, at = {}, {}, {}, {}
for i = 1, #found, 2 do
  ids[#ids + 1] = found[i]
  due[#due + 1] = { id = found[i], at = tonumber(found[i + 1]), place = 0 }
end
if #ids > 0 then
  for _, list in ipairs({ 'q', 'l' }) do
    for i, place in ipairs(call('ZMSCORE', base .. list, unpack(ids))) do
      if place then due[i].place = tonumber(place) end
    end
  end
end
table.sort(due, function(a, b)
  if a.at == b.at then return a.place < b.place end
  return a.at < b.at
end)
ids = {}
for i = 1, math.min(#due, asked.max) do
  local one = due[i]
  ids[i], names[i], at[2 * i - 1], at[2 * i] = one.id, 'r:' .. one.id, one.id, one.at
  call('ZADD', base .. 'd', now + asked.hold, one.id)
end
return { now, 0, look(names), {}, bodiesOf(ids), at }
