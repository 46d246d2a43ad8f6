-- How many rows are due of each of several senders. Reads only: a worker asks senders before it takes from those that have
-- work.
--   KEYS     of each sender as in rows.lua. Where they are in several slots it is asked of each alone.
--   ARGV[1]  index: d, u, or d:<kind> of registrations; max: no more are counted; longest: what would come due later than
--            so many ms from now is due too; suspects: whether it is asked for those too
-- Answers the clock; when the first comes due whose time has not come, and when the first of all, suspects too ('': none);
-- whether a suspect is due; then in pairs the place of a sender that has some, from 0, and how many.
local far, next, first, isSuspectDue, found = now + asked.longest, math.huge, math.huge, 0, {}
local function endOf(set, place) return tonumber(call('ZRANGE', set, place, place, 'WITHSCORES')[2]) end
local function text(at) return at < math.huge and string.format('%.0f', at) or '' end

local function look(set, place)
  local at, count = endOf(set, 0), 0
  if not at then return end
  first = math.min(first, at)
  if at <= now then
    count = call('ZCOUNT', set, '-inf', now)
    at = tonumber(call('ZRANGEBYSCORE', set, '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]) or math.huge
  end
  next = math.min(next, at)
  if endOf(set, -1) > far then count = count + call('ZCOUNT', set, '(' .. text(far), '+inf') end
  if count > 0 then found[#found + 1], found[#found + 2] = place, math.min(count, asked.max) end
end

for i = 1, #KEYS, 2 do
  look(KEYS[i] .. asked.index, (i - 1) / 2)
  local suspect = asked.suspects and endOf(KEYS[i] .. 'u', 0)
  if suspect then
    first = math.min(first, suspect)
    if suspect <= now or endOf(KEYS[i] .. 'u', -1) > far then isSuspectDue = 1 end
  end
end
return { now, text(next), text(first), isSuspectDue, found }
