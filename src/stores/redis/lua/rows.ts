import { MARK_AHEAD_MS } from '../../contract.ts';

/**
 * Rows of one sender, in Lua: the head of every script that works on one.
 *
 *     KEYS[1]  base: prefix and hash tag of the sender, itself never a key. All below it are in one slot:
 *              r:<key>            record, a row of RECORD         b:<key>  its body until DONE
 *              t:<task id>        row of TASK                     y:<task id>  keys parked behind the task's holder
 *              n:<notification>   row of MARK                     f:<media buy>  row of MARK: its final report
 *              o:<len>:<keyid>:<nonce>  row of NONCE              z:<keyid>  its nonces by expiry
 *              x  records, tasks and marks by expiry              i  key ids by expiry of their last nonce
 *              q, l, k  QUEUED, LEASED, DEAD keys by insertion    d  acknowledged keys by when workers may look
 *              s  bytes of each unfinished record, their sum, kept  w  written where a script writes nothing else
 *              a:<call>  what a worker's call leased
 *     KEYS[2]  base:w. While the slot is being moved to another node two keys of which one does not exist make Redis
 *              answer TRYAGAIN on both nodes: a script never sees a part of the rows.
 *     ARGV     names and values by turns; what is absent is left out. offset: ms added to the server's clock.
 *
 * Rows are packed in the order of their fields, nil where there is none: a third of a hash's memory, one GET. What has
 * expired by `expiresAt` counts as absent; Redis's own expiry comes SLACK later and only frees memory of senders that
 * fell silent, for accepts clear away what expired. Sorted sets by expiry are the counts: nothing has to be kept equal.
 *
 * Atomic: Redis runs one script at a time, and a script that begins to write is not refused for want of memory in
 * the middle.
 */
export const ROWS: string = String.raw`
local call, base, A = redis.call, KEYS[1], {}
for i = 1, #ARGV, 2 do A[ARGV[i]] = ARGV[i + 1] end
local function num(name) return tonumber(A[name]) end
local time = call('TIME')
local real = time[1] * 1000 + math.floor(time[2] / 1000)
local now = real + num('offset')
local SLACK, NONCE_SLACK, AHEAD = 3600000, 60000, ${MARK_AHEAD_MS}
local LISTS = { queued = ':q', leased = ':l', dead = ':k' }
local RECORD = { 'state', 'claim', 'claimedBy', 'owner', 'fence', 'leaseUntil', 'attempts', 'crashes', 'acked',
  'insertedAt', 'place', 'notBefore', 'parkedUntil', 'lastError', 'rawHash', 'canonicalHash', 'taskId', 'instant',
  'instantMs', 'terminal', 'reemission', 'afterTerminal', 'ahead', 'afterFinal', 'bodyBytes', 'expiresAt' }
local TASK = { 'holder', 'mark', 'markTerminal', 'expiresAt' }
local MARK = { 'key', 'expiresAt' }
local NONCE = { 'key', 'acceptId', 'expiresAt' }
-- What this script did: whether it wrote, the latest expiry that it gave, and how many rows it added to the count.
local wrote, latest, added = false, 0, 0
-- Bytes of unfinished records, where it changed them; and how an expired row is deleted.
local bytesSum, drop

local function redisTime(at) return math.ceil(at - now + real) end

local function get(fields, key)
  local text = call('GET', base .. key)
  if not text then return nil end
  local values, row = { cmsgpack.unpack(text) }, {}
  for i = 1, #fields do row[fields[i]] = values[i] end
  if row.expiresAt and row.expiresAt <= now then return nil end
  return row
end

local function put(fields, key, row, slack)
  local values = {}
  for i = 1, #fields do values[i] = row[fields[i]] end
  local text = cmsgpack.pack(unpack(values, 1, #fields))
  if row.expiresAt then call('SET', base .. key, text, 'PXAT', redisTime(row.expiresAt) + slack)
  else call('SET', base .. key, text) end
  wrote = true
end

local function live(index) return call('ZCOUNT', base .. index, '(' .. string.format('%.0f', now), '+inf') end

local function dueAt(row)
  if not row.acked then return nil end
  if row.state == 'queued' then return math.max(row.notBefore, row.parkedUntil) end
  if row.state == 'leased' then return math.max(row.leaseUntil, row.parkedUntil) end
  return nil
end

local function seen(row)
  return { state = row.state, bytes = row.bodyBytes, expiresAt = row.expiresAt, due = dueAt(row),
    parked = row.parkedUntil > 0 }
end

local function getRecord(key)
  local row = get(RECORD, ':r:' .. key)
  if row then row.was = seen(row) end
  return row
end

local function bodyOf(key) return call('GET', base .. ':b:' .. key) or '' end

local function saveBody(key, row, was, body)
  local name = base .. ':b:' .. key
  if body and row.bodyBytes > 0 then
    if row.expiresAt then call('SET', name, body, 'PXAT', redisTime(row.expiresAt) + SLACK)
    else call('SET', name, body) end
  elseif row.bodyBytes == 0 then
    if was.bytes and was.bytes > 0 then call('DEL', name) end
  elseif row.expiresAt == was.expiresAt then return
  elseif row.expiresAt then call('PEXPIREAT', name, redisTime(row.expiresAt) + SLACK)
  else call('PERSIST', name) end
end

local function saveBytes(key, row, was)
  local delta = row.bodyBytes - (was.bytes or 0)
  if delta ~= 0 then bytesSum = call('HINCRBY', base .. ':s', 'sum', delta) end
  if not LISTS[row.state] then
    if LISTS[was.state] then call('HDEL', base .. ':s', 'of ' .. key) end
  elseif delta ~= 0 or not LISTS[was.state] then call('HSET', base .. ':s', 'of ' .. key, row.bodyBytes) end
end

local function count(member, expiresAt)
  latest = math.max(latest, expiresAt or math.huge)
  return call('ZADD', base .. ':x', expiresAt or '+inf', member)
end

-- Writes the row and whatever index its change touches.
local function saveRecord(key, row, body)
  local was, is = row.was, seen(row)
  if not was then
    -- What expired under this key and was not cleared away goes first.
    if count('r' .. key, row.expiresAt) == 0 then
      drop('r' .. key)
      count('r' .. key, row.expiresAt)
    end
    added, was = added + 1, {}
  elseif was.expiresAt ~= is.expiresAt then count('r' .. key, row.expiresAt) end
  put(RECORD, ':r:' .. key, row, SLACK)
  saveBody(key, row, was, body)
  saveBytes(key, row, was)
  if was.state ~= is.state then
    if LISTS[was.state] then call('ZREM', base .. LISTS[was.state], key) end
    if LISTS[is.state] then call('ZADD', base .. LISTS[is.state], string.format('%.17g', row.place), key) end
  end
  if is.due then
    if was.due ~= is.due then call('ZADD', base .. ':d', is.due, key) end
  elseif was.due then call('ZREM', base .. ':d', key) end
  if row.taskId and is.parked ~= (was.parked or false) then
    if is.parked then call('ZADD', base .. ':y:' .. row.taskId, string.format('%.17g', row.place), key)
    else call('ZREM', base .. ':y:' .. row.taskId, key) end
  end
  row.was = is
end

local function getTask(id) return id and get(TASK, ':t:' .. id) end

-- Tasks, notification ids and final reports are counted beside the records.
local function saveCounted(kind, fields, id, row)
  put(fields, ':' .. kind .. ':' .. id, row, SLACK)
  added = added + count(kind .. id, row.expiresAt)
end

local function saveTask(id, row, change)
  row = row or {}
  for name, value in pairs(change) do row[name] = value end
  saveCounted('t', TASK, id, row)
end

-- A script that writes nothing gives WAIT nothing to wait for.
local function touch() if not wrote then call('SET', base .. ':w', '1', 'PX', 86400000) end end
`;
