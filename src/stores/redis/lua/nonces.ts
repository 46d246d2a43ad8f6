/**
 * Rule 1, and check 9a: nonces.
 *
 *     ARGV  keyid, nonce, nonceMs (how long it lives), maxNoncesPerKey, maxNonces, otherNonces (live ones of all other
 *           senders, as far as this process knows: they are in other slots)
 */
export const NONCES: string = String.raw`
local function nonceKey() return ':o:' .. #A.keyid .. ':' .. A.keyid .. ':' .. A.nonce end

-- Live ones of the key id, and of the sender.
local function countNonces()
  local own, sum = live(':z:' .. A.keyid), 0
  for _, keyid in ipairs(call('ZRANGEBYSCORE', base .. ':i', '(' .. string.format('%.0f', now), '+inf')) do
    sum = sum + (keyid == A.keyid and own or live(':z:' .. keyid))
  end
  return own, sum
end

local function checkNonce(known, record, own, sum)
  if not A.nonce then return nil end
  if not known then
    local full = own >= num('maxNoncesPerKey') or num('otherNonces') + sum >= num('maxNonces')
    return full and 'rate-abuse' or nil
  end
  local same = known.key == A.key
  if same and known.acceptId == A.acceptId then return nil end
  if same and record and not record.acked then return nil end
  return 'replayed'
end

-- To the next minute, so that most nonces find their key id noted for long enough.
local function noteKeyid(expiresAt)
  local noted = tonumber(call('ZSCORE', base .. ':i', A.keyid) or 0)
  if noted >= expiresAt then return end
  local at = expiresAt + NONCE_SLACK
  call('ZREMRANGEBYSCORE', base .. ':i', '-inf', now)
  call('ZADD', base .. ':i', at, A.keyid)
  for _, index in ipairs({ ':i', ':z:' .. A.keyid }) do
    if call('PTTL', base .. index) < at - now then
      call('PEXPIREAT', base .. index, redisTime(at) + NONCE_SLACK)
    end
  end
end

-- 1 where it is new.
local function saveNonce(known)
  if not A.nonce or (known and known.acceptId == A.acceptId) then return 0 end
  local expiresAt = known and known.expiresAt or now + num('nonceMs')
  put(NONCE, nonceKey(), { key = A.key, acceptId = A.acceptId, expiresAt = expiresAt }, NONCE_SLACK)
  local new = call('ZADD', base .. ':z:' .. A.keyid, expiresAt, A.nonce)
  noteKeyid(expiresAt)
  return new
end
`;
