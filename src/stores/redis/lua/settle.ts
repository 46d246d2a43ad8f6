import { PURGE } from './purge.ts';
import { ROWS } from './rows.ts';
import { RULES } from './rules.ts';

const HEAD: string = ROWS + PURGE + RULES;

/**
 * Authorized by equality of the owner, not by the fence: after a lost failover a fence can start again.
 *
 *     ARGV  key, owner
 */
const HELD: string = String.raw`
local record = getRecord(A.key)
local held = record and record.owner == A.owner and isLive(record)
local function endedBy(state) return record ~= nil and record.owner == A.owner and record.state == state end
local function answer(text)
  touch()
  return text
end
`;

/** Store.fail: queued, dead, lost. ARGV  + permanent, unstarted, attempts, backoffMs, error, retentionMs */
export const FAIL: string =
  HEAD +
  HELD +
  String.raw`
if not held then
  return answer(endedBy('queued') and 'queued' or endedBy('dead') and 'dead' or 'lost')
end
record.lastError = A.error or record.lastError
if not A.unstarted and (A.permanent or record.attempts >= num('attempts')) then
  record.state, record.acked, record.expiresAt = 'dead', true, nil
else
  record.state, record.notBefore, record.expiresAt = 'queued', now + num('backoffMs'), nil
  if A.unstarted then record.attempts = record.attempts - 1 end
  if not record.acked then record.expiresAt = now + num('retentionMs') end
end
saveRecord(A.key, record)
freeTask(record.taskId)
letGo(record.state)
return record.state
`;

/** Store.renew: renewed, lost. ARGV  + leaseMs */
export const RENEW: string =
  HEAD +
  HELD +
  String.raw`
if not held then return answer('lost') end
record.leaseUntil = now + num('leaseMs')
if record.expiresAt then record.expiresAt = math.max(record.expiresAt, record.leaseUntil) end
saveRecord(A.key, record)
return 'renewed'
`;

/** Store.peek: a PeekResult. Writes where it is the end, so that WAIT covers what a 2xx rests on. ARGV  key */
export const PEEK: string =
  HEAD +
  String.raw`
local record = getRecord(A.key)
if not record then return 'absent' end
if not LISTS[record.state] or record.state == 'dead' then
  touch()
  return record.state
end
if isLive(record) or holderOf(getTask(record.taskId), record.taskId) then return 'busy' end
return 'free'
`;
