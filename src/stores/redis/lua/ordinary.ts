import { MARK_AHEAD_MS, PRESSURE_SHARE } from '../../contract.ts';
import { HEADER, NAMED, UNPACK } from './request.ts';
import { LOOK, LOOK_AT_NONCES, SHARED, WRITE_SHARED } from './shared.ts';

/**
 * The ordinary accept, which is nearly every one: inline, a new event with a new nonce, the first of its task or of none,
 * no limit near, little that has expired. It does what the rules (`lua/accept.ts`) do in that case, with two thirds of
 * the commands and without the functions that the other cases need, and with a third of them where several come
 * together; whatever is not so is theirs, and it has not written then.
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
 * Of several, each sees the rows of those before it, for rows are written at once, and their counts, which are added up
 * here. Places are a µs apart, and none of them takes less.
 *
 * Answer: now, live nonces of the sender, 1 where the event is ahead.
 */
const ORDINARY: string = String.raw`
repeat
  -- An event; not inbox (256), no notification id (64), no final report (512).
  if band(flags, 834) ~= 2 or reports > 0 or #body == 0 then break end
  local r, t = base .. ':r:' .. key, taskId and base .. ':t:' .. taskId
  local o = nonce and base .. ':o:' .. #keyid .. ':' .. keyid .. ':' .. nonce
  local found = call('MGET', r, t or r, o or r)
  if found[1] or found[2] or found[3] then break end
${LOOK}
  local leaseUntil, markUntil = now + leaseMs, now + markMs
  local expiresAt = math.max(now + retentionMs, leaseUntil)
  if (taskId and math.max(expiresAt, markUntil) or expiresAt) > kept then break end
  if sum + #body >= maxPendingBytes * ${PRESSURE_SHARE} then break end
  if counted == 0 or expired >= 16 or counted + 2 >= maxRecords * ${PRESSURE_SHARE} then break end
  if expired > 0 and call('ZSCORE', base .. ':x', 'r' .. key) then break end

  local nonceUntil, id = now + nonceMs, nil
  if nonce then
${LOOK_AT_NONCES}
    id = keyids[keyid]
    if not id or id[1] < nonceUntil or id[2] + 1 >= maxNoncesPerKey * ${PRESSURE_SHARE}
      or otherNonces + nonces + 1 >= maxNonces * ${PRESSURE_SHARE} then break end
    id[3] = id[3] or call('ZCARD', base .. ':z:' .. keyid) - id[2]
    if id[3] >= 16 then break end
  end

  local ahead = instantMs ~= nil and instantMs > now + ${MARK_AHEAD_MS}
  local place = now + micros / 1000
  if recordUntil ~= expiresAt then
    recordUntil, recordScore = expiresAt, format('%.17g', expiresAt)
    recordLife = format('%.0f', math.ceil(expiresAt - now + real) + 3600000)
  end
  local n = counts and #counts or 0
  if n == 0 then counts, bytes, places = {}, {}, {} end
  counts[n + 1], counts[n + 2] = recordScore, 'r' .. key
  if taskId then
    if markedUntil ~= markUntil then
      markedUntil, markScore = markUntil, format('%.17g', markUntil)
      markLife = format('%.0f', math.ceil(markUntil - now + real) + 3600000)
    end
    counts[n + 3], counts[n + 4] = markScore, 't' .. taskId
    call('SET', t, cmsgpack.pack(key, nil, nil, markUntil), 'PXAT', markLife)
  end
  call('SET', r, cmsgpack.pack('leased', 'won', acceptId, acceptId, 1, leaseUntil, 1, 0, nil, now, place, now, 0, nil,
    rawHash, canonicalHash, taskId, instant, instantMs, band(flags, 128) ~= 0 or nil, nil, nil, ahead or nil, nil, #body,
    expiresAt), 'PXAT', recordLife)
  call('SET', base .. ':b:' .. key, body, 'PXAT', recordLife)
  sum, counted, micros, n = sum + #body, counted + (taskId and 2 or 1), micros + 1, #bytes
  bytes[n + 1], bytes[n + 2] = 'of ' .. key, #body
  places[n + 1], places[n + 2] = format('%.17g', place), key
  if nonce then
    call('SET', o, cmsgpack.pack(key, acceptId, nonceUntil), 'PXAT', math.ceil(nonceUntil - now + real) + 60000)
    used = used or {}
    local members = used[keyid] or {}
    used[keyid], n = members, #members
    members[n + 1], members[n + 2] = nonceUntil, nonce
    nonces, id[2] = nonces + 1, id[2] + 1
  end
  answer = format('%.0f %.0f %d', now, nonces or 0, ahead and 1 or 0)
until true
`;

/**
 * The script accept: all that it is told of in their order, as if each came alone; the ordinary ones here, the others by
 * the rules.
 * @param rules what is done with one, as the body of a function of its ARGV.
 */
export function acceptsBy(rules: string): string {
  return `
local call, base, band, format = redis.call, KEYS[1], bit.band, string.format
${HEADER}${SHARED}
local answers, arg, most = {}, 2, #ARGV[1]
-- Clearances of 256 rows where bodies are near or over the cap: for all of them together, for nobody else is served
-- meanwhile.
local clearances = 16
while at <= most do
  local answer, body = nil, ARGV[arg]
${UNPACK}${ORDINARY}
  if not answer then
${WRITE_SHARED}${NAMED}
    local function rules(ARGV)
${rules}
    end
    answer = rules(named)
  end
  answers[#answers + 1], at, arg = answer, behind, arg + 1 + reports
end
${WRITE_SHARED}
return answers
`;
}
