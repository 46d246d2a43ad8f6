import { MARK_AHEAD_MS, PRESSURE_SHARE } from '../../contract.ts';

/**
 * How `redis/pack.ts` packs what an accept is told: numbers, then texts behind their lengths. A text that is absent is
 * empty, and `flags` says which are.
 *
 *     ARGV[1]  all but the body     ARGV[2]  body     ARGV[3] …  media buys of the report
 *
 * Many arguments cost more than what is done with them: on both sides each is an object of its own.
 */
const UNPACK: string = String.raw`
local offset, flags, leaseMs, retentionMs, markMs, attempts, crashes, maxRecords, maxPendingBytes, maxNoncesPerKey,
  maxNonces, otherNonces, nonceMs, instantMs, acceptId, keyid, nonce, key, rawHash, canonicalHash, taskId, instant,
  notificationId = struct.unpack('<ddddddddddddddI4c0I4c0I4c0I4c0I4c0I4c0I4c0I4c0I4c0', ARGV[1])
local function is(flag) return bit.band(flags, flag) ~= 0 end
if not is(1) then keyid, nonce = nil, nil end
if not is(2) then key, rawHash = nil, nil end
if not is(4) then canonicalHash = nil end
if not is(8) then taskId = nil end
if not is(16) then instant = nil end
if not is(32) then instantMs = nil end
if not is(64) then notificationId = nil end
`;

/**
 * The ordinary accept, which is nearly every one: inline, a new event with a new nonce, the first of its task or of none,
 * no limit near, little that has expired. It does what the rules (`lua/accept.ts`) do in that case, with two thirds of
 * the commands and without the functions that the other cases need; whatever is not so is theirs, and it has not
 * written then.
 *
 * Why the outcome is the same, rule by rule:
 * 1. the nonce is unknown: a row that is there but has expired counts as absent for the rules, and is theirs here. Both
 *    caps are looked at with the same counts, at the share where pressure begins, and so below the caps themselves.
 * 2. there is no record, not even an expired one.
 * 3. no row of the task, so no mark: not stale, not after a terminal status, and held by nobody.
 * 4. entries and bytes are below the share of pressure, with this event's own added; bytes of expired ones are in the
 *    sum, which is so never too low.
 * 5. the same rows and index entries with the same values and expiries. What expired and left an index entry behind
 *    without its row is the rules': it is looked for where anything in the index has expired.
 * Clearing away is put off until 16 have expired, the most that one accept clears; then it is the rules'. The indexes'
 * own expiries are long enough, or it is theirs.
 *
 * Returns: now, live nonces of the sender, 1 where the event is ahead.
 */
const ORDINARY: string = String.raw`
local function ordinary()
  -- An event; not inbox (256), no notification id (64), no final report (512).
  if bit.band(flags, 834) ~= 2 or ARGV[3] or #ARGV[2] == 0 then return nil end
  local call, base, body = redis.call, KEYS[1], ARGV[2]
  local time = call('TIME')
  local real = time[1] * 1000 + math.floor(time[2] / 1000)
  local now = real + offset
  local since = '(' .. string.format('%.0f', now)

  local r, t = base .. ':r:' .. key, taskId and base .. ':t:' .. taskId
  local o = nonce and base .. ':o:' .. #keyid .. ':' .. keyid .. ':' .. nonce
  local found = call('MGET', r, t or r, o or r)
  if found[1] or found[2] or found[3] then return nil end

  local leaseUntil, markUntil = now + leaseMs, now + markMs
  local expiresAt = math.max(now + retentionMs, leaseUntil)
  local latest = taskId and math.max(expiresAt, markUntil) or expiresAt
  local kept = call('HMGET', base .. ':s', 'sum', 'kept')
  if latest > (tonumber(kept[2]) or 0) then return nil end
  local sum = tonumber(kept[1] or 0) + #body
  if sum >= maxPendingBytes * ${PRESSURE_SHARE} then return nil end

  local x = base .. ':x'
  local counted = call('ZCOUNT', x, since, '+inf')
  local expired = call('ZCARD', x) - counted
  if counted == 0 or expired >= 16 or counted + 2 >= maxRecords * ${PRESSURE_SHARE} then return nil end
  if expired > 0 and call('ZSCORE', x, 'r' .. key) then return nil end

  local nonces, nonceUntil, z = 0, now + nonceMs, nonce and base .. ':z:' .. keyid
  if nonce then
    local own = call('ZCOUNT', z, since, '+inf')
    if call('ZCARD', z) - own >= 16 then return nil end
    local noted, index = 0, call('ZRANGE', base .. ':i', 0, -1, 'WITHSCORES')
    nonces = own + 1
    for i = 1, #index, 2 do
      local at = tonumber(index[i + 1])
      if index[i] == keyid then noted = at
      elseif at > now then nonces = nonces + call('ZCOUNT', base .. ':z:' .. index[i], since, '+inf') end
    end
    if noted < nonceUntil or own + 1 >= maxNoncesPerKey * ${PRESSURE_SHARE}
      or otherNonces + nonces >= maxNonces * ${PRESSURE_SHARE} then return nil end
  end

  local ahead = instantMs ~= nil and instantMs > now + ${MARK_AHEAD_MS}
  local place = now + time[2] % 1000 / 1000
  local until_ = math.ceil(expiresAt - now + real) + 3600000
  if taskId then
    call('ZADD', x, expiresAt, 'r' .. key, markUntil, 't' .. taskId)
    call('SET', t, cmsgpack.pack(key, nil, nil, markUntil), 'PXAT', math.ceil(markUntil - now + real) + 3600000)
  else call('ZADD', x, expiresAt, 'r' .. key) end
  call('SET', r, cmsgpack.pack('leased', 'won', acceptId, acceptId, 1, leaseUntil, 1, 0, nil, now, place, now, 0, nil,
    rawHash, canonicalHash, taskId, instant, instantMs, is(128) or nil, nil, nil, ahead or nil, nil, #body, expiresAt),
    'PXAT', until_)
  call('SET', base .. ':b:' .. key, body, 'PXAT', until_)
  call('HSET', base .. ':s', 'sum', sum, 'of ' .. key, #body)
  local list = base .. ':l'
  call('ZADD', list, string.format('%.17g', place), key)
  if kept[2] ~= 'inf' and call('PTTL', list) == -1 then
    call('PEXPIREAT', list, math.ceil(tonumber(kept[2]) - now + real) + 3600000)
  end
  if nonce then
    call('SET', o, cmsgpack.pack(key, acceptId, nonceUntil), 'PXAT', math.ceil(nonceUntil - now + real) + 60000)
    call('ZADD', z, nonceUntil, nonce)
  end
  return string.format('%.0f %.0f %d', now, nonces, ahead and 1 or 0)
end
local told = ordinary()
if told then return told end
`;

/** For the rules: names and values by turns, as every other script has them (`lua/rows.ts`). */
const NAMED: string = String.raw`
local named, reports = { 'offset', offset, 'mode', is(256) and 'inbox' or 'inline', 'acceptId', acceptId, 'body', ARGV[2],
  'onChanged', is(1024) and 'conflict' or 'first-wins', 'leaseMs', leaseMs, 'retentionMs', retentionMs, 'markMs', markMs,
  'attempts', attempts, 'crashes', crashes, 'maxRecords', maxRecords, 'maxPendingBytes', maxPendingBytes,
  'maxNoncesPerKey', maxNoncesPerKey, 'maxNonces', maxNonces, 'otherNonces', otherNonces, 'nonceMs', nonceMs,
  'reports', math.max(0, #ARGV - 2) }, ARGV
for name, value in pairs({ keyid = keyid, nonce = nonce, key = key, rawHash = rawHash, canonicalHash = canonicalHash,
  taskId = taskId, instant = instant, instantMs = instantMs, notificationId = notificationId,
  terminal = is(128) and '1' or nil, final = is(512) and '1' or nil }) do
  named[#named + 1] = name
  named[#named + 1] = value
end
for i = 3, #reports do
  named[#named + 1] = 'report' .. (i - 2)
  named[#named + 1] = reports[i]
end
local ARGV = named
`;

/** The head of the script accept. */
export const ORDINARY_ACCEPT: string = UNPACK + ORDINARY + NAMED;
