/**
 * What processes tell each other, in a slot of its own: the senders whose events they store, so that workers find
 * them, and how many live nonces each sender has, for the cap on all of them together (verification.md §2.9a:
 * approximate).
 *
 *     KEYS[1]  base, itself never a key: KEYS[1]:s the set of senders, KEYS[1]:n sender → live nonces and until when
 *     KEYS[2]  KEYS[1]:s, so that a slot that is being moved answers TRYAGAIN
 *     ARGV     how many senders to register, those; then of each count: sender, nonces, until when (Unix ms)
 *
 * Returns the counts that still hold: sender, nonces, until when, by turns. Absolute counts, last writer wins: said
 * twice they are the same. Atomic as every script; nothing rests on it but that a worker looks.
 */
export const REGISTER: string = String.raw`
local senders = tonumber(ARGV[1])
for i = 2, senders + 1 do redis.call('SADD', KEYS[1] .. ':s', ARGV[i]) end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = senders + 2, #ARGV, 3 do
  redis.call('HSET', KEYS[1] .. ':n', ARGV[i], ARGV[i + 1] .. ' ' .. ARGV[i + 2])
end
local out = {}
local counts = redis.call('HGETALL', KEYS[1] .. ':n')
for i = 1, #counts, 2 do
  local nonces, untilMs = counts[i + 1]:match('^(%d+) (%d+)$')
  if tonumber(untilMs) <= now then redis.call('HDEL', KEYS[1] .. ':n', counts[i])
  else
    out[#out + 1] = counts[i]
    out[#out + 1] = nonces
    out[#out + 1] = untilMs
  end
end
return out
`;

/** All registered senders. KEYS as in REGISTER. */
export const SENDERS: string = String.raw`return redis.call('SMEMBERS', KEYS[1] .. ':s')`;
