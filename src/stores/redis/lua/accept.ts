import { PRESSURE_SHARE } from '../../contract.ts';
import { NONCES } from './nonces.ts';
import { acceptsBy } from './ordinary.ts';
import { PURGE } from './purge.ts';
import { ROWS } from './rows.ts';
import { RULES } from './rules.ts';

/**
 * Rules 3 to 5: an event that is new.
 *
 *     ARGV  key, body, rawHash, canonicalHash, taskId, instant, instantMs, terminal, notificationId, reports (how many
 *           media buys the report is of), report1 … reportN, final, maxRecords, maxPendingBytes
 */
const INSERT: string = String.raw`
-- 256 rows a part: 4096 at most in one script, whoever asks.
local function clear(parts)
  local gone = purge(256 * math.min(parts, clearances))
  clearances = clearances - math.ceil(gone / 256)
  return gone
end

-- What has expired never counts.
local function bytesFull(pending)
  local room = num('maxPendingBytes') - #A.body
  while pending > room do
    if clear(1) == 0 then return true end
    pending = bytesSum or pending
  end
  return false
end

local function fresh()
  return { state = 'queued', claim = 'waiting', claimedBy = A.acceptId, fence = 0, leaseUntil = 0, attempts = 0,
    crashes = 0, insertedAt = now, place = now + time[2] % 1000 / 1000, notBefore = now, parkedUntil = 0,
    rawHash = A.rawHash, canonicalHash = A.canonicalHash, taskId = A.taskId, instant = A.instant,
    instantMs = num('instantMs'), terminal = A.terminal and true, bodyBytes = #A.body,
    expiresAt = now + num('retentionMs') }
end

-- Whether the mark was first set by another event.
local function noteMark(kind, id, save)
  local known = get(MARK, ':' .. kind .. ':' .. id)
  if save then
    saveCounted(kind, MARK, id, { key = known and known.key or A.key, expiresAt = now + num('markMs') })
  end
  return known ~= nil and known.key ~= A.key
end

local function insertEvent(row, task)
  if A.notificationId then row.reemission = noteMark('n', A.notificationId, true) or nil end
  for i = 1, num('reports') do
    if noteMark('f', A['report' .. i], A.final) then row.afterFinal = true end
  end
  row.ahead = isAhead(row) or nil
  local holder = holderOf(task, row.taskId)
  local kind = 'task-busy'
  if A.mode == 'inbox' then
    kind, row.claim, row.acked, row.expiresAt = 'queued', 'queued', true, nil
    if holder then row.parkedUntil = parkedUntil(holder) end
  elseif not holder then
    lease(row, A.acceptId)
    kind, row.claim, row.afterTerminal = 'won', 'won', isAfterTerminal(row, task) or nil
  end
  saveRecord(A.key, row, A.body)
  if row.taskId then
    saveTask(row.taskId, task, { holder = kind == 'won' and A.key or (task and task.holder),
      expiresAt = now + num('markMs') })
  end
  return kind
end

local function newEvent(counted, pending)
  local row = fresh()
  local full = counted >= num('maxRecords')
  local task = getTask(row.taskId)
  if isStale(row, task) then
    if not full then
      row.state, row.claim, row.acked, row.bodyBytes = 'stale', 'stale', true, 0
      row.ahead = isAhead(row) or nil
      saveRecord(A.key, row)
    end
    return 'stale', row
  end
  if full then return 'over-cap', nil, 'records' end
  if bytesFull(pending) then return 'over-cap', nil, 'pending-bytes' end
  return insertEvent(row, task), row
end
`;

/** Rule 2: the record exists. ARGV  mode, acceptId, onChanged, leaseMs, retentionMs, attempts, crashes */
const ON_RECORD: string = String.raw`
local function isChanged(row)
  if A.rawHash == row.rawHash then return false end
  return A.canonicalHash == nil or A.canonicalHash ~= row.canonicalHash
end

-- What an accept that comes again was told; nil: decide anew.
local function answerAgain(row)
  if row.claimedBy ~= A.acceptId or row.claim == 'waiting' then return nil end
  if row.claim ~= 'won' then return row.claim end
  local over = row.state == 'leased' and not isLive(row)
  if row.owner ~= row.claimedBy or row.state == 'queued' or over then return nil end
  return 'won'
end

local function onRecord(row)
  local again = answerAgain(row)
  if again then return again end
  if A.onChanged == 'conflict' and isChanged(row) then return 'conflict' end
  if not LISTS[row.state] or row.state == 'dead' then return 'done' end
  if A.mode == 'inbox' then
    if not row.acked then
      row.acked, row.expiresAt = true, nil
      saveRecord(A.key, row)
    end
    return 'in-flight'
  end
  if isLive(row) then return 'in-flight' end
  local kind = claimRecord(A.key, row, A.acceptId, function(claim) row.claim, row.claimedBy = claim, A.acceptId end)
  if kind == 'dead' then return 'died' end
  return kind == 'busy' and 'task-busy' or kind
end
`;

/**
 * Store.accept, rules 1 to 5 in their order; returns names and values by turns: kind, changed, state, died, limit, owner,
 * fence, attempt, reemission, afterTerminal, afterFinal, ahead, body (the first copy, where this one differs), pressure
 * (names, by commas), nonces (live ones of the sender), now. The ordinary ones are not for it (`lua/ordinary.ts`).
 */
const MAIN: string = String.raw`
purge(16)
local own, sum = 0, 0
if A.nonce then
  purgeNonces(A.keyid, 16)
  own, sum = countNonces()
end
local counted = entries()
local totals = call('HMGET', base .. ':s', 'sum', 'kept')
local pending = tonumber(totals[1] or 0)
local record = A.key and getRecord(A.key)
local changed = record and isChanged(record)
local known = A.nonce and get(NONCE, nonceKey())
local kind, row, limit = checkNonce(known, record, own, sum), record, nil
local new = 0
if not kind then
  if record then kind = onRecord(record)
  elseif A.key then kind, row, limit = newEvent(counted, pending)
  else kind = 'burned' end
  -- The nonce goes with the event or not at all: burned before the event is safe, it would lose the event.
  if kind ~= 'over-cap' then new = saveNonce(known) end
end
keepIndexes(totals[2], row and row.state)
touch()

local function used(max, is) return is >= num(max) * ${PRESSURE_SHARE} end
local pressure = {}
if used('maxRecords', counted + added) then pressure[1] = 'records' end
if used('maxPendingBytes', bytesSum or pending) then
  clear(4)
  if used('maxPendingBytes', bytesSum or pending) then pressure[#pressure + 1] = 'pending-bytes' end
end
local reply = { 'kind', kind == 'died' and 'done' or kind, 'now', now, 'changed', changed and 1 or 0 }
local function say(name, value) reply[#reply + 1] = name; reply[#reply + 1] = value end
if A.nonce then
  if used('maxNoncesPerKey', own + new) then pressure[#pressure + 1] = 'nonces' end
  if used('maxNonces', num('otherNonces') + sum + new) then pressure[#pressure + 1] = 'all-nonces' end
  say('nonces', sum + new)
end
say('pressure', table.concat(pressure, ','))
if limit then say('limit', limit) end
if kind == 'won' or kind == 'queued' then told(reply, row, row.claimedBy) end
if kind == 'won' and changed and row.state ~= 'applied' then say('body', bodyOf(A.key)) end
if kind == 'done' then say('state', row.state) end
if kind == 'died' then say('state', 'dead'); say('died', 1) end
return reply
`;

export const ACCEPT: string = acceptsBy(ROWS + PURGE + RULES + NONCES + INSERT + ON_RECORD + MAIN);
