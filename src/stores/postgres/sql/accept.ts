import { isAhead, markLife } from './words.ts';

/**
 * `Store.accept`, rules 1 to 5 in their order; its doc comment in `stores/accept.ts` and `stores/contract.ts` is the law.
 *
 *     webhook_on_record  rule 2: the record is there
 *     webhook_insert     rule 5: record, task, notification ids; inline and its task free, leased at once
 *     webhook_decide     rules 2 to 5
 *     webhook_accept     step, call, all bodies → kind, more, body; and the nonce, which goes with the event or not at
 *                        all: burned before the event is safe, it would lose the event
 *
 * Atomic because the buckets of everything that it decides by (key, task, nonce, notification ids) are locked until the
 * commit; and a 2xx may rest on every answer, because each transaction writes (`run.ts`).
 */
export const ACCEPT: string = `
CREATE FUNCTION webhook_on_record(s webhook_step, c webhook_call, r webhook_head)
RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_changed boolean := encode(r.raw_hash, 'hex') <> c.raw_hash
    AND (c.canonical_hash IS NULL OR encode(r.canonical_hash, 'hex') IS DISTINCT FROM c.canonical_hash);
  v_first boolean := false;
BEGIN
  s.more := jsonb_build_object('changed', v_changed);
  IF r.claimed_by = c.caller THEN
    -- A lease that ran out, was given back or went to a worker is nobody's: a handler must not start on it.
    IF r.claim = 'won' AND r.owner = r.claimed_by AND r.state <> 'queued'
      AND NOT (r.state = 'leased' AND r.lease_until <= s.at) THEN
      s.kind := 'won';
      s.more := webhook_won(r, v_changed);
      v_first := v_changed AND r.state <> 'applied';
    ELSIF r.claim = 'queued' THEN
      s.kind := 'queued';
      s.more := s.more || jsonb_build_object('reemission', r.reemission, 'ahead', r.ahead);
    ELSIF r.claim = 'stale' THEN
      s.kind := 'stale';
    ELSIF r.claim = 'died' THEN
      s.kind := 'done';
      s.more := s.more || '{"state": "dead", "died": true}';
    END IF;
  END IF;
  IF s.kind IS NULL THEN
    IF v_changed AND c.on_changed = 'conflict' THEN
      s.kind := 'conflict';
      s.more := '{}';
    ELSIF r.state IN ('applied', 'stale', 'dead') THEN
      s.kind := 'done';
      s.more := s.more || jsonb_build_object('state', r.state, 'died', false);
    ELSIF c.mode = 'inbox' THEN
      -- The answer will be 2xx, so from here on it is safe; its worker does the rest.
      IF NOT r.acked THEN
        UPDATE webhook_record SET acked = true, expires_at = NULL WHERE sender_id = s.sender_id AND key = r.key;
      END IF;
      s.kind := 'in-flight';
    ELSIF r.state = 'leased' AND r.lease_until > s.at THEN
      s.kind := 'in-flight';
    ELSE
      s := webhook_claim(s, c, r);
      IF s.kind = 'won' THEN
        s.more := s.more || jsonb_build_object('changed', v_changed);
        v_first := v_changed;
      ELSIF s.kind = 'died' THEN
        s.kind := 'done';
        s.more := s.more || '{"state": "dead", "died": true}';
      ELSIF s.kind = 'busy' THEN
        s.kind := 'task-busy';
      END IF;
    END IF;
  END IF;
  IF v_first THEN
    SELECT body INTO s.body FROM webhook_record WHERE sender_id = s.sender_id AND key = r.key;
  END IF;
  RETURN s;
END $$;
CREATE FUNCTION webhook_note(s webhook_step, c webhook_call, p_id text, p_save boolean)
RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  n webhook_notification;
  v_key text;
  v_new boolean;
BEGIN
  SELECT * INTO n FROM webhook_notification WHERE sender_id = s.sender_id AND notification_id = p_id;
  IF n.expires_at > s.at THEN v_key := n.record_key; END IF;
  -- held: the id came before, under another key.
  s.held := coalesce(v_key <> c.key, false);
  IF NOT p_save THEN RETURN s; END IF;
  INSERT INTO webhook_notification (sender_id, notification_id, record_key, expires_at)
  VALUES (s.sender_id, p_id, coalesce(v_key, c.key), s.at + ${markLife('c.retention_ms')})
  ON CONFLICT (sender_id, notification_id) DO UPDATE SET record_key = excluded.record_key,
    expires_at = excluded.expires_at
  RETURNING xmax = 0 INTO v_new;
  IF v_new THEN s.entries := s.entries + 1; END IF;
  RETURN s;
END $$;
CREATE FUNCTION webhook_insert(s webhook_step, c webhook_call, t webhook_task, p_state text, p_body bytea)
RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  r webhook_head;
  v_id text;
BEGIN
  r.state := p_state;
  r.reemission := false;
  r.after_final := false;
  r.after_terminal := false;
  r.fence := CASE p_state WHEN 'leased' THEN 1 ELSE 0 END;
  r.attempts := r.fence;
  r.lease_until := CASE p_state WHEN 'leased' THEN s.at + c.lease_ms ELSE 0 END;
  r.acked := p_state = 'stale' OR c.mode = 'inbox';
  r.ahead := ${isAhead('c.instant_ms', 's.at')};
  r.expires_at := s.at + greatest(c.retention_ms, CASE p_state WHEN 'leased' THEN c.lease_ms END);
  r.claim := CASE p_state WHEN 'leased' THEN 'won' WHEN 'stale' THEN 'stale'
    ELSE CASE c.mode WHEN 'inbox' THEN 'queued' ELSE 'waiting' END END;
  IF p_state <> 'stale' THEN
    IF c.notification_id IS NOT NULL THEN
      s := webhook_note(s, c, c.notification_id, true);
      r.reemission := s.held;
    END IF;
    FOREACH v_id IN ARRAY coalesce(c.media_buys, '{}') LOOP
      s := webhook_note(s, c, v_id, c.final);
      r.after_final := r.after_final OR s.held;
    END LOOP;
    IF c.mode = 'inbox' THEN r.expires_at := NULL; END IF;
    IF p_state = 'leased' THEN r.after_terminal := coalesce(t.mark_terminal AND c.instant > t.mark, false); END IF;
    IF c.task_id IS NOT NULL THEN
      t.task_id := c.task_id;
      IF p_state = 'leased' THEN t.holder := c.key; END IF;
      s := webhook_save_task(s, t, c.retention_ms);
    END IF;
  END IF;
  INSERT INTO webhook_record (sender_id, key, state, claim, claimed_by, owner, fence, lease_until, attempts, crashes,
    acked, inserted_at, not_before, parked_until, raw_hash, canonical_hash, task_id, instant, instant_ms, terminal,
    reemission, after_terminal, after_final, ahead, body_bytes, expires_at, body)
  VALUES (s.sender_id, c.key, r.state, r.claim, c.caller, CASE p_state WHEN 'leased' THEN c.caller END, r.fence,
    r.lease_until, r.attempts, 0, r.acked, s.at, s.at, CASE WHEN r.acked THEN s.parked_until ELSE 0 END,
    decode(c.raw_hash, 'hex'), decode(c.canonical_hash, 'hex'), c.task_id, c.instant, c.instant_ms,
    coalesce(c.terminal, false), r.reemission, r.after_terminal, r.after_final, r.ahead,
    CASE p_state WHEN 'stale' THEN 0 ELSE c.body_bytes END, r.expires_at,
    CASE p_state WHEN 'stale' THEN NULL ELSE p_body END);
  s.entries := s.entries + 1;
  IF p_state <> 'stale' THEN s.pending_bytes := s.pending_bytes + c.body_bytes; END IF;
  s.kind := CASE r.claim WHEN 'waiting' THEN 'task-busy' ELSE r.claim END;
  s.more := CASE r.claim WHEN 'won' THEN webhook_won(r, false)
    WHEN 'queued' THEN jsonb_build_object('changed', false, 'reemission', r.reemission, 'ahead', r.ahead)
    ELSE '{"changed": false}' END;
  RETURN s;
END $$;
`;
