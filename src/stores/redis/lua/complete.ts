import { PURGE } from './purge.ts';
import { ROWS } from './rows.ts';
import { RULES } from './rules.ts';

/**
 * What completions write together. Of these indexes nothing is read before the end, and what a completion in between
 * does to them by itself comes to the same in any order.
 */
const SHARED: string = String.raw`
local counts, bodies, sizes, leased, freed = {}, {}, {}, {}, 0

local function countLater(member, expiresAt)
  latest = math.max(latest, expiresAt)
  counts[#counts + 1] = expiresAt
  counts[#counts + 1] = member
end

-- The same as saveRecord does with a record whose inline lease ends well.
local function saveLater(key, row, was)
  put(RECORD, ':r:' .. key, row, SLACK)
  countLater('r' .. key, row.expiresAt)
  if was.bytes > 0 then bodies[#bodies + 1] = base .. ':b:' .. key end
  sizes[#sizes + 1], leased[#leased + 1], freed = 'of ' .. key, key, freed + was.bytes
end

local function writeShared()
  if counts[1] then call('ZADD', base .. ':x', unpack(counts)) end
  if bodies[1] then call('DEL', unpack(bodies)) end
  if freed > 0 then bytesSum = call('HINCRBY', base .. ':s', 'sum', -freed) end
  if sizes[1] then
    call('HDEL', base .. ':s', unpack(sizes))
    call('ZREM', base .. ':l', unpack(leased))
  end
end
`;

/** The mark before the record, which says that all is done. */
const ONE: string = String.raw`
local function raiseMark(record)
  if not record.instant or not record.taskId or record.ahead then return end
  local task = getTask(record.taskId) or {}
  -- Never back: a clock that was set back can make a lost lease look live.
  if task.mark and before(record.instant, task.mark) then return end
  task.mark, task.markTerminal, task.expiresAt = record.instant, record.terminal or false, now + num('markMs')
  put(TASK, ':t:' .. record.taskId, task, SLACK)
  countLater('t' .. record.taskId, task.expiresAt)
end

-- done, or lost. Authorized by equality of the owner, as in lua/settle.ts.
local function complete()
  local record = getRecord(A.key)
  if not record or record.owner ~= A.owner or not isLive(record) then
    return record and record.owner == A.owner and record.state == 'applied' and 'done' or 'lost'
  end
  local was, inbox = record.was, record.acked or record.parkedUntil > 0
  record.state, record.acked, record.bodyBytes, record.expiresAt = 'applied', true, 0, now + num('retentionMs')
  raiseMark(record)
  if inbox then saveRecord(A.key, record) else saveLater(A.key, record, was) end
  freeTask(record.taskId)
  return 'done'
end
`;

/**
 * Store.complete of one or some events, one after the other: done or lost of each. What a script before has answered is
 * answered again. Where the rows of one are at fault each is sent again alone, and those before it find theirs done: so
 * their indexes are written first.
 *
 *     ARGV  items (of each: retentionMs, markMs, key, owner; packed by `redis/pack.ts`)
 */
const EACH: string = String.raw`
local answers, at = {}, 1
while at <= #A.items do
  A.retentionMs, A.markMs, A.key, A.owner, at = struct.unpack('<ddI4c0I4c0', A.items, at)
  local ran, answer = pcall(complete)
  if not ran then
    writeShared()
    error(answer, 0)
  end
  answers[#answers + 1] = answer
end
writeShared()
if wrote then letGo() else touch() end
return answers
`;

export const COMPLETE: string = ROWS + PURGE + RULES + SHARED + ONE + EACH;
