/**
 * Rules that accepts, workers and settlement share; `kernel/order.ts`, `kernel/claim.ts` and `kernel/park.ts` say the
 * same in TypeScript, and why. Over `ROWS`.
 */
export const RULES: string = String.raw`
-- Lua compares strings by the server's locale: instants are compared by their bytes.
local function before(a, b)
  if a == b then return false end
  local i = 1
  while a:byte(i) == b:byte(i) do i = i + 1 end
  return (a:byte(i) or -1) < (b:byte(i) or -1)
end

local function isStale(row, task)
  if not row.instant or not task or not task.mark then return false end
  if row.instant == task.mark then return task.markTerminal == true and not row.terminal end
  return before(row.instant, task.mark)
end

local function isAfterTerminal(row, task)
  if not row.instant or not task or not task.mark then return false end
  return task.markTerminal == true and before(task.mark, row.instant)
end

local function isAhead(row) return row.instantMs ~= nil and row.instantMs > now + AHEAD end

local function isLive(row) return row.state == 'leased' and row.leaseUntil > now end

-- The live lease that holds the task. A key that was forgotten may have come again for another task.
local function holderOf(task, id)
  local holder = task and task.holder and getRecord(task.holder)
  if holder and holder.taskId == id and isLive(holder) then return holder end
  return nil
end

local function parkedUntil(holder)
  if holder.acked then return now + 600000 end
  return holder.leaseUntil
end

-- The next event that waits for the task is due.
local function freeTask(id)
  if not id then return end
  local parked = base .. ':y:' .. id
  local key = call('ZRANGE', parked, 0, 0)[1]
  while key do
    local row = getRecord(key)
    if row then
      row.parkedUntil = 0
      return saveRecord(key, row)
    end
    call('ZREM', parked, key)
    key = call('ZRANGE', parked, 0, 0)[1]
  end
end

local function lease(row, owner)
  row.state, row.owner, row.fence, row.attempts = 'leased', owner, row.fence + 1, row.attempts + 1
  row.leaseUntil, row.parkedUntil = now + num('leaseMs'), 0
  row.expiresAt = nil
  -- Never acknowledged: its retention from its last attempt, and never under a live lease.
  if not row.acked then row.expiresAt = math.max(now + num('retentionMs'), row.leaseUntil) end
end

local function hold(key, row, task)
  if row.taskId then saveTask(row.taskId, task, { holder = key, expiresAt = now + num('markMs') }) end
end

local function finish(key, row, state, expiresAt)
  row.state, row.owner, row.acked, row.parkedUntil, row.expiresAt = state, nil, true, 0, expiresAt
  saveRecord(key, row)
  freeTask(row.taskId)
  return state
end

-- A record that is QUEUED or whose lease is over, for whoever wants to run it: won, dead, stale, or busy and the
-- holder of its task. note(kind) writes what an accept remembers of its answer.
local function claimRecord(key, row, owner, note)
  local attempts, crashes = row.attempts, row.crashes
  if row.state == 'leased' then
    -- Its process died; the claimant's own it was not told of, and no handler ran.
    if row.owner == owner then attempts = attempts - 1 else crashes = crashes + 1 end
  end
  if attempts >= num('attempts') or crashes >= num('crashes') then
    row.attempts, row.crashes = attempts, crashes
    note('died')
    return finish(key, row, 'dead', nil)
  end
  local task = getTask(row.taskId)
  local holder = holderOf(task, row.taskId)
  if holder then return 'busy', holder end
  row.attempts, row.crashes = attempts, crashes
  if isStale(row, task) then
    row.bodyBytes = 0
    note('stale')
    return finish(key, row, 'stale', now + num('retentionMs'))
  end
  lease(row, owner)
  row.ahead, row.afterTerminal = isAhead(row) or nil, isAfterTerminal(row, task) or nil
  note('won')
  saveRecord(key, row)
  hold(key, row, task)
  return 'won'
end

-- What a caller is told of a lease that it won.
local function told(reply, row, owner)
  for _, pair in ipairs({ { 'owner', owner }, { 'fence', row.fence }, { 'attempt', row.attempts },
    { 'reemission', row.reemission and 1 }, { 'afterTerminal', row.afterTerminal and 1 },
    { 'afterFinal', row.afterFinal and 1 }, { 'ahead', row.ahead and 1 } }) do
    if pair[2] then
      reply[#reply + 1] = pair[1]
      reply[#reply + 1] = pair[2]
    end
  end
end
`;
