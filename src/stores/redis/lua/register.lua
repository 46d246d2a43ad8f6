-- What processes tell each other, in a slot of its own: the senders whose events they store, so that workers find them,
-- and how many nonces each has, for the cap on all of them together (verification.md §2.9a: approximate).
--
--   KEYS[1]  base, itself never a key: base .. 's' the set of senders, base .. 'n' sender → nonces and until when
--   KEYS[2]  base .. 's', so that a slot that is being moved answers TRYAGAIN
--   ARGV[1]  JSON; senders to be registered; counts { sender, nonces, until when (Unix ms) }
--
-- Answers the counts that still hold. Absolute counts, last writer wins: said twice they are the same.
local call, base, asked = redis.call, KEYS[1], cjson.decode(ARGV[1])
local time = call('TIME')
for _, sender in ipairs(asked.senders) do call('SADD', base .. 's', sender) end
for _, count in ipairs(asked.counts) do
  call('HSET', base .. 'n', count[1], string.format('%.0f %.0f', count[2], count[3]))
end
local out = {}
local counts = call('HGETALL', base .. 'n')
for i = 1, #counts, 2 do
  local nonces, untilMs = counts[i + 1]:match('^(%d+) (%d+)$')
  if tonumber(untilMs) <= time[1] * 1000 then call('HDEL', base .. 'n', counts[i])
  else out[#out + 1], out[#out + 2], out[#out + 3] = counts[i], nonces, untilMs end
end
return out
