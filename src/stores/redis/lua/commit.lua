-- Takes each unit whose rows have the versions that it expects.
--
--   ARGV[1]  at; names, versions ('': absent) of all rows, unit by unit, those that are written first; units (of each:
--            how many rows, how many it writes); writes (of each: the list it was on,
--            bytes added, expiry by Redis (0: none), length of its row, length of its body (-1: stays, -2: dropped), then
--            index and score in pairs: at false it leaves the index, at true it is put at its place); keyids { keyid, until
--            when }; counts
--   ARGV[2]  the rows, one behind the other; ARGV[3]  the bodies
if asked.at < now - math.max(1000, #asked.names) or asked.at > now + 5 then return { now, 1, {}, {}, {}, {} } end

local is = rowsOf(asked.names)
local added, removed, rows, bodies, dropped, bytes, places = {}, {}, {}, {}, {}, 0, 0

local function placeOf(list, id)
  local place = list ~= '' and call('ZSCORE', base .. list, id)
  if place then return place end
  places = places + 1
  return string.format('%.0f', time[1] * 1000000 + time[2] + asked.offset * 1000 + places)
end

local function put(index, member, score)
  local of = score == false and removed or added
  local values = of[index] or {}
  of[index] = values
  if score ~= false then values[#values + 1] = score end
  values[#values + 1] = member
end

local function take(name, write, row, body)
  local id, place = name:match('%z(.*)$') or name:sub(3), nil
  for i = 6, #write, 2 do
    local index, score = write[i], write[i + 1]
    if score == true then
      place = place or placeOf(write[1], id)
      score = place
    end
    put(index, index == 'x' and name or id, score)
  end
  bytes = bytes + write[2]
  rows[#rows + 1] = { base .. name, ARGV[2]:sub(row, row + write[4] - 1), write[3] }
  if write[5] >= 0 then bodies[#bodies + 1] = { base .. 'b:' .. id, ARGV[3]:sub(body, body + write[5] - 1) } end
  if write[5] == -2 then dropped[#dropped + 1] = base .. 'b:' .. id end
end

local function holds(unit, from)
  for i = from, from + unit[1] - 1 do
    if (is[i] and is[i]:sub(1, 16) or '') ~= asked.versions[i] then return false end
  end
  return true
end

local row, write, rowAt, bodyAt, refused, seen = 1, 1, 1, 1, {}, {}
for place, unit in ipairs(asked.units) do
  local taken = holds(unit, row)
  if not taken then
    refused[#refused + 1] = place - 1
    for i = row, row + unit[1] - 1 do seen[#seen + 1] = asked.names[i] end
  end
  for i = 0, unit[2] - 1 do
    local one = asked.writes[write + i]
    if taken then take(asked.names[row + i], one, rowAt, bodyAt) end
    rowAt, bodyAt = rowAt + one[4], bodyAt + math.max(0, one[5])
  end
  row, write = row + unit[1], write + unit[2]
end

-- Rows last: should an index be at fault, nothing has been said yet.
for index, values in pairs(added) do many('ZADD', base .. index, values) end
for index, values in pairs(removed) do many('ZREM', base .. index, values) end
if bytes ~= 0 then call('INCRBY', base .. 's', bytes) end
for _, keyid in ipairs(asked.keyids) do call('ZADD', base .. 'i', keyid[2], keyid[1]) end
if #dropped > 0 then call('DEL', unpack(dropped)) end
for _, body in ipairs(bodies) do call('SET', body[1], body[2]) end
for _, one in ipairs(rows) do
  if one[3] == 0 then call('SET', one[1], one[2]) else call('SET', one[1], one[2], 'PXAT', one[3]) end
end
-- A script that writes nothing gives WAIT nothing to wait for.
if #rows == 0 then call('SET', base .. 'w', '1', 'PX', 86400000) end
return { now, 0, look(seen), countsOf(asked.counts), {}, refused }
