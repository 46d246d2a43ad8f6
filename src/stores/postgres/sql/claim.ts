import { isAhead } from './words.ts';

/**
 * Rule 2 of `Store.accept` for a record that nobody holds, and `StoreInbox.lease` for each candidate.
 *
 *     webhook_end    step, call, record, state → DEAD (kind "died") or DONE(stale) (kind "stale"); a worker's, kind
 *                    "later" and nothing written: somebody has locked what waits for its task
 *     webhook_claim  step, call, record → leased to the caller (kind "won"), ended, or kind "busy" and nothing
 *                    written: another record's live lease holds its task
 *
 * The record's row is locked, and so are the buckets of its key and its task: what was read is true until the commit.
 * A worker waits for nobody; and that somebody has locked what waits for a task does not say that it is due: rows that
 * were passed over because they had just been parked stay locked until the commit.
 *
 * An accept (`op` "accept") notes on the record what it was told, for the same accept may come again.
 */
export const CLAIM: string = `
CREATE FUNCTION webhook_end(s webhook_step, c webhook_call, r webhook_head, p_state text)
RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_dead boolean := p_state = 'dead';
  v_kind text := CASE p_state WHEN 'dead' THEN 'died' ELSE 'stale' END;
BEGIN
  IF c.op = 'lease' AND r.task_id IS NOT NULL AND NOT webhook_hold_parked(s.sender_id, r.task_id, r.key) THEN
    s.kind := 'later';
    RETURN s;
  END IF;
  UPDATE webhook_record SET state = p_state, owner = NULL, attempts = r.attempts, crashes = r.crashes, acked = true, parked_until = 0,
    claim = CASE WHEN c.op = 'accept' THEN v_kind ELSE claim END,
    claimed_by = CASE WHEN c.op = 'accept' THEN c.caller ELSE claimed_by END,
    body = CASE WHEN v_dead THEN body END,
    expires_at = CASE WHEN v_dead THEN NULL ELSE s.at + c.retention_ms END
    WHERE sender_id = s.sender_id AND key = r.key;
  IF NOT v_dead THEN s.pending_bytes := s.pending_bytes - r.body_bytes; END IF;
  -- It may have been the one that was told of its task's freedom: the next one is, in its place.
  IF r.task_id IS NOT NULL THEN PERFORM webhook_free_task(s.sender_id, r.task_id); END IF;
  s.kind := v_kind;
  RETURN s;
END $$;
CREATE FUNCTION webhook_claim(s webhook_step, c webhook_call, r webhook_head)
RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  t webhook_task;
BEGIN
  PERFORM webhook_must_lock(s, r.task_id);
  -- Its process died, which is counted here; attempts were counted at the lease. The caller's own it was not told of.
  IF r.state = 'leased' THEN
    IF r.owner = c.caller THEN r.attempts := r.attempts - 1; ELSE r.crashes := r.crashes + 1; END IF;
  END IF;
  IF r.attempts >= c.attempts OR r.crashes >= c.crashes THEN RETURN webhook_end(s, c, r, 'dead'); END IF;
  IF r.task_id IS NOT NULL THEN
    t := webhook_find_task(s, r.task_id);
    s := webhook_holder(s, t);
    IF s.held THEN
      s.kind := 'busy';
      RETURN s;
    END IF;
    IF webhook_stale(r.instant, r.terminal, t.mark, t.mark_terminal) THEN
      RETURN webhook_end(s, c, r, 'stale');
    END IF;
    t.task_id := r.task_id;
    t.holder := r.key;
    s := webhook_save_task(s, t, c.retention_ms);
  END IF;
  r.ahead := ${isAhead('r.instant_ms', 's.at')};
  r.after_terminal := coalesce(t.mark_terminal AND r.instant > t.mark, false);
  r.fence := r.fence + 1;
  r.attempts := r.attempts + 1;
  -- Never acknowledged: kept for the retention after its last attempt, and never less than the lease.
  UPDATE webhook_record SET state = 'leased', owner = c.caller, lease_until = s.at + c.lease_ms, parked_until = 0,
    fence = r.fence, attempts = r.attempts, crashes = r.crashes, ahead = r.ahead, after_terminal = r.after_terminal,
    claim = CASE WHEN c.op = 'accept' THEN 'won' ELSE claim END,
    claimed_by = CASE WHEN c.op = 'accept' THEN c.caller ELSE claimed_by END,
    expires_at = CASE WHEN acked THEN NULL ELSE s.at + greatest(c.retention_ms, c.lease_ms) END
    WHERE sender_id = s.sender_id AND key = r.key;
  s.kind := 'won';
  s.more := webhook_won(r, false);
  RETURN s;
END $$;
`;
