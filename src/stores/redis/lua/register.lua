-- What processes tell each other, in a slot of its own: the senders whose events they store, so that workers find them,
-- and how many nonces each has, for the cap on all of them together (verification.md §2.9a: approximate).
--
--   KEYS[1]  base, itself never a key: base .. 's' the set of senders, base .. 'n' sender → nonces
--   KEYS[2]  base .. 's', so that a slot that is being moved answers TRYAGAIN
--   ARGV[1]  JSON; senders to be registered; counts { sender, nonces }; told: whether all counts are asked for
--
-- Answers all counts, or none. Absolute counts, last writer wins: said twice they are the same.
local call, base, asked = redis.call, KEYS[1], cjson.decode(ARGV[1])
for _, sender in ipairs(asked.senders) do call('SADD', base .. 's', sender) end
for _, count in ipairs(asked.counts) do call('HSET', base .. 'n', count[1], count[2]) end
return asked.told and call('HGETALL', base .. 'n') or {}
