/**
 * Rule 1, and check 9a: nonces.
 *
 *     ARGV  keyid, nonce, nonceMs (how long it lives), maxNoncesPerKey, maxNonces, otherNonces (live ones of all other
 *           senders, as far as this process knows: they are in other slots)
 */
export const NONCES: string = String.raw`
local function nonceKey() return ':o:' .. #A.keyid .. ':' .. A.keyid .. ':' .. A.nonce end

local function senderNonces()
  local sum = 0
  for _, keyid in ipairs(call('ZRANGEBYSCORE', base .. ':i', '(' .. string.format('%.0f', now), '+inf')) do
    sum = sum + live(':z:' .. keyid)
  end
  return sum
end

local function checkNonce(known, record)
  if not A.nonce then return nil end
  if not known then
    local full = live(':z:' .. A.keyid) >= num('maxNoncesPerKey')
      or num('otherNonces') + senderNonces() >= num('maxNonces')
    return full and 'rate-abuse' or nil
  end
  local same = known.key == A.key
  if same and known.acceptId == A.acceptId then return nil end
  if same and record and not record.acked then return nil end
  return 'replayed'
end

local function keepUntil(index, at)
  local left = call('PTTL', base .. index)
  if left < at - now then call('PEXPIREAT', base .. index, redisTime(at) + NONCE_SLACK) end
end

local function saveNonce(known)
  if not A.nonce or (known and known.acceptId == A.acceptId) then return end
  local expiresAt = known and known.expiresAt or now + num('nonceMs')
  put(NONCE, nonceKey(), { key = A.key, acceptId = A.acceptId, expiresAt = expiresAt }, NONCE_SLACK)
  call('ZADD', base .. ':z:' .. A.keyid, expiresAt, A.nonce)
  call('ZREMRANGEBYSCORE', base .. ':i', '-inf', now)
  local last = call('ZSCORE', base .. ':i', A.keyid)
  if not last or tonumber(last) < expiresAt then call('ZADD', base .. ':i', expiresAt, A.keyid) end
  keepUntil(':z:' .. A.keyid, expiresAt)
  keepUntil(':i', expiresAt)
end
`;
