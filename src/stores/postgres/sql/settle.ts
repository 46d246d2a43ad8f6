import { markLife } from './words.ts';

/**
 * The end of a lease, and what operators do.
 *
 *     webhook_complete  kind "done", or "lost": the lease ran out or has another owner, and nothing changed. As "finish"
 *                       (the owner's transaction) not repeatable: its writes belong to this completion alone
 *     webhook_fail      kind "queued", "dead" or "lost"
 *     webhook_renew     kind "renewed" or "lost"
 *     webhook_peek      kind "absent", "free", "busy", or how it ended; reads only (`run.ts` makes it a barrier)
 *     webhook_redrive   DEAD → QUEUED, due at once. Kind "queued", "absent" or "other"
 *     webhook_discard   DEAD or QUEUED → DONE(stale). Kind "discarded", "absent" or "other"
 *
 * Each is a compare-and-set: one UPDATE whose condition is the live lease of its owner (equality of the owner, not the
 * fence). Where it finds none, the same call made again by the owner gets the same answer.
 */
export const SETTLE: string = `
CREATE FUNCTION webhook_ended(s webhook_step, c webhook_call) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT state FROM webhook_record WHERE sender_id = s.sender_id AND key = c.key AND owner = c.caller
    AND (expires_at IS NULL OR expires_at > s.at));
END $$;
CREATE FUNCTION webhook_complete(s webhook_step, c webhook_call) RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  r record;
  v_new boolean;
BEGIN
  UPDATE webhook_record SET state = 'applied', acked = true, body = NULL, expires_at = s.at + c.retention_ms
    WHERE sender_id = s.sender_id AND key = c.key AND owner = c.caller
      AND state = 'leased' AND lease_until > s.at AND (expires_at IS NULL OR expires_at > s.at)
    RETURNING task_id, instant, terminal, ahead, body_bytes INTO r;
  IF NOT FOUND THEN
    s.kind := CASE WHEN c.op = 'complete' AND webhook_ended(s, c) = 'applied' THEN 'done' ELSE 'lost' END;
    RETURN s;
  END IF;
  s.kind := 'done';
  s.pending_bytes := s.pending_bytes - r.body_bytes;
  IF r.task_id IS NULL THEN RETURN s; END IF;
  PERFORM webhook_must_lock(s, r.task_id);
  IF r.instant IS NOT NULL AND NOT r.ahead THEN
    -- Never back: a store's clock that was set back can make a lost lease look live.
    INSERT INTO webhook_task AS t (sender_id, task_id, holder, mark, mark_terminal, expires_at)
    VALUES (s.sender_id, r.task_id, NULL, r.instant, r.terminal, s.at + ${markLife('c.retention_ms')})
    ON CONFLICT (sender_id, task_id) DO UPDATE SET mark = excluded.mark, mark_terminal = excluded.mark_terminal,
      expires_at = excluded.expires_at, holder = CASE WHEN t.expires_at > s.at THEN t.holder END
      WHERE t.expires_at <= s.at OR t.mark IS NULL OR t.mark <= excluded.mark
    RETURNING xmax = 0 INTO v_new;
    IF v_new THEN s.entries := s.entries + 1; END IF;
  END IF;
  PERFORM webhook_free_task(s.sender_id, r.task_id);
  RETURN s;
END $$;
CREATE FUNCTION webhook_fail(s webhook_step, c webhook_call) RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  UPDATE webhook_record SET last_error = coalesce(c.error, last_error),
    state = CASE WHEN NOT c.unstarted AND (c.permanent OR attempts >= c.attempts) THEN 'dead' ELSE 'queued' END
    WHERE sender_id = s.sender_id AND key = c.key AND owner = c.caller
      AND state = 'leased' AND lease_until > s.at AND (expires_at IS NULL OR expires_at > s.at)
    RETURNING state, task_id INTO r;
  IF NOT FOUND THEN
    s.kind := webhook_ended(s, c);
    IF s.kind IS NULL OR s.kind NOT IN ('queued', 'dead') THEN s.kind := 'lost'; END IF;
    RETURN s;
  END IF;
  IF r.state = 'dead' THEN
    UPDATE webhook_record SET acked = true, expires_at = NULL WHERE sender_id = s.sender_id AND key = c.key;
  ELSE
    UPDATE webhook_record SET not_before = s.at + c.backoff_ms, attempts = attempts - c.unstarted::integer,
      expires_at = CASE WHEN acked THEN NULL ELSE s.at + c.retention_ms END
      WHERE sender_id = s.sender_id AND key = c.key;
  END IF;
  IF r.task_id IS NOT NULL THEN
    PERFORM webhook_must_lock(s, r.task_id);
    PERFORM webhook_free_task(s.sender_id, r.task_id);
  END IF;
  s.kind := r.state;
  RETURN s;
END $$;
CREATE FUNCTION webhook_renew(s webhook_step, c webhook_call) RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_task text;
BEGIN
  UPDATE webhook_record SET lease_until = s.at + c.lease_ms,
    expires_at = CASE WHEN expires_at IS NOT NULL THEN greatest(expires_at, s.at + c.lease_ms) END
    WHERE sender_id = s.sender_id AND key = c.key AND owner = c.caller
      AND state = 'leased' AND lease_until > s.at AND (expires_at IS NULL OR expires_at > s.at)
    RETURNING task_id INTO v_task;
  s.kind := CASE WHEN FOUND THEN 'renewed' ELSE 'lost' END;
  PERFORM webhook_must_lock(s, v_task);
  RETURN s;
END $$;
CREATE FUNCTION webhook_peek(s webhook_step, c webhook_call) RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  r webhook_head;
BEGIN
  SELECT * INTO r FROM webhook_head
    WHERE sender_id = s.sender_id AND key = c.key AND (expires_at IS NULL OR expires_at > s.at);
  s.kind := CASE WHEN NOT FOUND THEN 'absent' WHEN r.state IN ('applied', 'stale', 'dead') THEN r.state
    WHEN r.state = 'leased' AND r.lease_until > s.at THEN 'busy' ELSE 'free' END;
  IF s.kind = 'free' AND r.task_id IS NOT NULL THEN
    s := webhook_holder(s, webhook_find_task(s, r.task_id));
    IF s.held THEN s.kind := 'busy'; END IF;
  END IF;
  RETURN s;
END $$;
CREATE FUNCTION webhook_redrive(s webhook_step, c webhook_call) RETURNS webhook_step LANGUAGE plpgsql AS $$
BEGIN
  UPDATE webhook_record SET state = 'queued', owner = NULL, attempts = 0, crashes = 0, not_before = s.at
    WHERE sender_id = s.sender_id AND key = c.key AND state = 'dead';
  s.kind := CASE WHEN FOUND THEN 'queued' WHEN (webhook_peek(s, c)).kind = 'absent' THEN 'absent' ELSE 'other' END;
  RETURN s;
END $$;
CREATE FUNCTION webhook_discard(s webhook_step, c webhook_call) RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  UPDATE webhook_record SET state = 'stale', owner = NULL, acked = true, body = NULL, parked_until = 0,
    expires_at = s.at + c.retention_ms
    WHERE sender_id = s.sender_id AND key = c.key AND state IN ('dead', 'queued')
      AND (expires_at IS NULL OR expires_at > s.at)
    RETURNING task_id, body_bytes INTO r;
  IF NOT FOUND THEN
    s.kind := CASE (webhook_peek(s, c)).kind WHEN 'absent' THEN 'absent' ELSE 'other' END;
    RETURN s;
  END IF;
  s.kind := 'discarded';
  s.pending_bytes := s.pending_bytes - r.body_bytes;
  IF r.task_id IS NOT NULL THEN
    PERFORM webhook_must_lock(s, r.task_id);
    PERFORM webhook_free_task(s.sender_id, r.task_id);
  END IF;
  RETURN s;
END $$;
`;
