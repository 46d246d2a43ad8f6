import { PURGE } from './purge.ts';
import { ROWS } from './rows.ts';
import { RULES } from './rules.ts';

/**
 * When the sender's acknowledged events come due: ms from now of the first ones, at most `max`, at most one that is
 * not due yet. Reads only; a worker asks every sender before it leases from those that have work. ARGV  max
 */
export const DUE: string =
  ROWS +
  String.raw`
local out = {}
for i, at in ipairs(call('ZRANGE', base .. ':d', 0, num('max'), 'WITHSCORES')) do
  if i % 2 == 0 and (#out == 0 or out[#out] <= 0) then out[#out + 1] = math.ceil(at - now) end
end
return out
`;

/**
 * StoreInbox.lease, of one sender: each candidate that is looked at leaves the due ones, leased, ended or parked, so
 * that none keeps workers busy that cannot run. The keys that were leased are kept under the call's id until their leases
 * run out: sent again for want of a reply, it gives the same events and not more.
 * Returns events (each: key, body, owner, fence, attempt, flags), died (keys), next (ms until the next is due).
 *
 *     ARGV  call, owner, max, leaseMs, retentionMs, markMs, attempts, crashes
 */
export const LEASE: string =
  ROWS +
  PURGE +
  RULES +
  String.raw`
local events, keys, died = {}, {}, {}

-- The earliest, of those the oldest.
local function nextKey()
  local first = call('ZRANGEBYSCORE', base .. ':d', '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
  if not first[1] then return nil end
  local same = call('ZRANGEBYSCORE', base .. ':d', first[2], first[2], 'LIMIT', 0, 16)
  local oldest, place = first[1], math.huge
  for _, key in ipairs(same) do
    local at = tonumber(call('ZSCORE', base .. ':q', key) or call('ZSCORE', base .. ':l', key) or 0)
    if at < place then oldest, place = key, at end
  end
  return oldest
end

local function give(key, row)
  local event = { 'key', key, 'body', bodyOf(key) }
  told(event, row, A.owner)
  events[#events + 1] = event
  keys[#keys + 1] = key
end

local function look(key)
  local row = getRecord(key)
  if not row then return call('ZREM', base .. ':d', key) end
  local kind, holder = claimRecord(key, row, A.owner, function() end)
  if kind == 'won' then give(key, row)
  elseif kind == 'dead' then died[#died + 1] = key
  elseif kind == 'busy' then
    row.parkedUntil = parkedUntil(holder)
    saveRecord(key, row)
  end
end

local again = call('GET', base .. ':a:' .. A.call)
if again then
  for _, key in ipairs({ cmsgpack.unpack(again) }) do
    local row = getRecord(key)
    if row and row.owner == A.owner and isLive(row) then give(key, row) end
  end
  touch()
else
  purge(16)
  for _ = 1, 256 do
    local key = #events < num('max') and nextKey()
    if not key then break end
    look(key)
  end
  if #keys > 0 then
    call('SET', base .. ':a:' .. A.call, cmsgpack.pack(unpack(keys)), 'PX', math.ceil(num('leaseMs')))
  end
  letGo()
end
local soon = call('ZRANGE', base .. ':d', 0, 0, 'WITHSCORES')[2]
local reply = { 'events', events, 'died', died }
if soon then reply[5] = 'next'; reply[6] = math.max(0, math.ceil(soon - now)) end
return reply
`;

const SEEN: string = String.raw`
local function seenRecord(key, row)
  local out = { 'key', key, 'place', string.format('%.17g', row.place), 'state', row.state, 'acked', row.acked and 1 or 0,
    'attempts', row.attempts, 'crashes', row.crashes, 'insertedAt', row.insertedAt, 'notBefore', row.notBefore,
    'leaseUntil', row.leaseUntil, 'bodyBytes', row.bodyBytes }
  if row.taskId then out[#out + 1] = 'taskId'; out[#out + 1] = row.taskId end
  if row.lastError then out[#out + 1] = 'lastError'; out[#out + 1] = row.lastError end
  return out
end
`;

/**
 * StoreInbox.list, of one sender: records of one list, oldest first, from a place on.
 *
 *     ARGV  list (':q', ':l', ':k'), limit, from (place), behind (key: begin after it, where the place is the same),
 *           all (where it is absent: leave out what has that very place)
 */
export const LIST: string =
  ROWS +
  RULES +
  SEEN +
  String.raw`
local out, skip = {}, 0
while #out < num('limit') do
  local part = call('ZRANGEBYSCORE', base .. A.list, A.from, '+inf', 'WITHSCORES', 'LIMIT', skip, 100)
  for i = 1, #part, 2 do
    local key, there = part[i], tonumber(part[i + 1]) == num('from')
    local past = there and not A.all and (not A.behind or not before(A.behind, key))
    local row = not past and #out < num('limit') and getRecord(key)
    if row then out[#out + 1] = seenRecord(key, row) end
  end
  if #part < 200 then break end
  skip = skip + 100
end
return out
`;

/** StoreInbox.inspect: what LIST gives of one record, and its body; false: none. Writes, for WAIT. ARGV  key */
export const INSPECT: string =
  ROWS +
  SEEN +
  String.raw`
local row = getRecord(A.key)
touch()
if not row then return false end
local out = seenRecord(A.key, row)
if LISTS[row.state] then out[#out + 1] = 'body'; out[#out + 1] = bodyOf(A.key) end
return out
`;

/** StoreInbox.redrive: queued, absent, other. ARGV  key */
export const REDRIVE: string =
  ROWS +
  String.raw`
local row = getRecord(A.key)
if not row or row.state ~= 'dead' then
  touch()
  return row and 'other' or 'absent'
end
row.state, row.owner, row.attempts, row.crashes, row.notBefore = 'queued', nil, 0, 0, now
saveRecord(A.key, row)
return 'queued'
`;

/** StoreInbox.discard: discarded, absent, other. ARGV  key, retentionMs */
export const DISCARD: string =
  ROWS +
  PURGE +
  RULES +
  String.raw`
local row = getRecord(A.key)
if not row or (row.state ~= 'dead' and row.state ~= 'queued') then
  touch()
  return row and 'other' or 'absent'
end
row.bodyBytes = 0
finish(A.key, row, 'stale', now + num('retentionMs'))
letGo()
return 'discarded'
`;
