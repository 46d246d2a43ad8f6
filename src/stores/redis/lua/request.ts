/**
 * How `redis/pack.ts` packs what accepts of one sender are told, one or some that came together: numbers, then texts
 * behind their lengths. A text that is absent is empty, and `flags` says which are.
 *
 *     ARGV[1]  offset, otherNonces, then all but the bodies of each
 *     ARGV[2]  … of each its body, and the media buys of its report
 *
 * Many arguments cost more than what is done with them: on both sides each is an object of its own.
 */
export const HEADER: string = String.raw`
local offset, otherNonces, at = struct.unpack('<dd', ARGV[1])
`;

/** The one that begins at `at` in ARGV[1], and where the next one begins. */
export const UNPACK: string = String.raw`
local flags, leaseMs, retentionMs, markMs, attempts, crashes, maxRecords, maxPendingBytes, maxNoncesPerKey, maxNonces,
  nonceMs, instantMs, reports, acceptId, keyid, nonce, key, rawHash, canonicalHash, taskId, instant, notificationId,
  behind = struct.unpack('<dddddddddddddI4c0I4c0I4c0I4c0I4c0I4c0I4c0I4c0I4c0', ARGV[1], at)
if band(flags, 1) == 0 then keyid, nonce = nil, nil end
if band(flags, 4) == 0 then canonicalHash = nil end
if band(flags, 8) == 0 then taskId = nil end
if band(flags, 16) == 0 then instant = nil end
if band(flags, 32) == 0 then instantMs = nil end
`;

/** For the rules: names and values by turns, as every other script has them (`lua/rows.ts`). */
export const NAMED: string = String.raw`
local function is(flag) return band(flags, flag) ~= 0 end
if not is(2) then key, rawHash = nil, nil end
if not is(64) then notificationId = nil end
local named = { 'offset', offset, 'mode', is(256) and 'inbox' or 'inline', 'acceptId', acceptId, 'body', body,
  'onChanged', is(1024) and 'conflict' or 'first-wins', 'leaseMs', leaseMs, 'retentionMs', retentionMs, 'markMs', markMs,
  'attempts', attempts, 'crashes', crashes, 'maxRecords', maxRecords, 'maxPendingBytes', maxPendingBytes,
  'maxNoncesPerKey', maxNoncesPerKey, 'maxNonces', maxNonces, 'otherNonces', otherNonces, 'nonceMs', nonceMs,
  'reports', reports }
for name, value in pairs({ keyid = keyid, nonce = nonce, key = key, rawHash = rawHash, canonicalHash = canonicalHash,
  taskId = taskId, instant = instant, instantMs = instantMs, notificationId = notificationId,
  terminal = is(128) and '1' or nil, final = is(512) and '1' or nil }) do
  named[#named + 1] = name
  named[#named + 1] = value
end
for i = 1, reports do
  named[#named + 1] = 'report' .. i
  named[#named + 1] = ARGV[arg + i]
end
`;
