/**
 * What ordinary accepts (`lua/ordinary.ts`) look at and write together. All of it inline, as parts of one function:
 * functions of its own and what they share would cost a lone accept a tenth of its time.
 */
export const SHARED: string = String.raw`
-- As of the last look, and with what was accepted since.
local loaded, real, now, micros, since, sum, kept, counted, expired = false
-- Live nonces of the sender; of each key id until when it is noted, its live ones, its expired ones.
local nonces, keyids
-- Members of the indexes that are still to be written.
local counts, bytes, places, used
-- Expiries are mostly the same in all of them.
local recordUntil, recordScore, recordLife, markedUntil, markScore, markLife
`;

export const LOOK: string = String.raw`
if not loaded then
  local time = call('TIME')
  real, micros = time[1] * 1000 + math.floor(time[2] / 1000), time[2] % 1000
  now = real + offset
  since = '(' .. format('%.0f', now)
  local totals = call('HMGET', base .. ':s', 'sum', 'kept')
  sum, kept = tonumber(totals[1] or 0), tonumber(totals[2]) or 0
  counted = call('ZCOUNT', base .. ':x', since, '+inf')
  expired = call('ZCARD', base .. ':x') - counted
  loaded, nonces = true, nil
end
`;

export const LOOK_AT_NONCES: string = String.raw`
if not nonces then
  nonces, keyids = 0, {}
  local index = call('ZRANGE', base .. ':i', 0, -1, 'WITHSCORES')
  for i = 1, #index, 2 do
    local noted = tonumber(index[i + 1])
    if noted > now then
      local live = call('ZCOUNT', base .. ':z:' .. index[i], since, '+inf')
      nonces, keyids[index[i]] = nonces + live, { noted, live, false }
    end
  end
end
`;

/** Before the rules look, which then count what came before; and at the end. */
export const WRITE_SHARED: string = String.raw`
if counts then
  local list = base .. ':l'
  call('ZADD', base .. ':x', unpack(counts))
  call('HSET', base .. ':s', 'sum', format('%.0f', sum), unpack(bytes))
  call('ZADD', list, unpack(places))
  if kept < math.huge and call('PTTL', list) == -1 then
    call('PEXPIREAT', list, format('%.0f', math.ceil(kept - now + real) + 3600000))
  end
  for id, members in pairs(used or {}) do call('ZADD', base .. ':z:' .. id, unpack(members)) end
  counts, used = nil, nil
end
loaded = false
`;
