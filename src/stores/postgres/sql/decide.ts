/**
 * `Store.accept`: the order of its rules.
 *
 *     webhook_decide  rules 3, 4 and 5: the record is not there, or has expired
 *     webhook_accept  step, call, all bodies → kind, more, body, pressure; and the nonce, which goes with the event or
 *                     not at all: burned before the event is safe, it would lose the event
 */
export const DECIDE = `
CREATE FUNCTION webhook_decide(s webhook_step, c webhook_call, p_bodies bytea)
RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  t webhook_task;
  v_stale boolean := false;
BEGIN
  s.held := false;
  s.parked_until := 0;
  IF c.task_id IS NOT NULL THEN
    t := webhook_find_task(s, c.task_id);
    v_stale := webhook_stale(c.instant, c.terminal, t.mark, t.mark_terminal);
    s := webhook_holder(s, t);
  END IF;
  s := webhook_room_entries(s, c);
  IF v_stale THEN
    IF NOT s.is_full THEN
      s.parked_until := 0;
      RETURN webhook_insert(s, c, t, 'stale', NULL);
    END IF;
    s.kind := 'stale';
    s.more := '{"changed": false}';
    RETURN s;
  END IF;
  IF s.is_full THEN
    s.kind := 'over-cap';
    s.more := '{"limit": "records"}';
    RETURN s;
  END IF;
  s := webhook_room_bytes(s, c);
  IF s.is_full THEN
    s.kind := 'over-cap';
    s.more := '{"limit": "pending-bytes"}';
    RETURN s;
  END IF;
  RETURN webhook_insert(s, c, t, CASE WHEN c.mode = 'inbox' OR s.held THEN 'queued' ELSE 'leased' END,
    substring(p_bodies FROM c.body_at + 1 FOR c.body_bytes));
END $$;
CREATE FUNCTION webhook_accept(s webhook_step, c webhook_call, p_bodies bytea)
RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  r webhook_head;
  n webhook_nonce;
  v_record boolean := false;
  v_known boolean := false;
  v_resent boolean := false;
  v_new boolean;
BEGIN
  IF c.key IS NOT NULL THEN
    SELECT * INTO r FROM webhook_head WHERE sender_id = s.sender_id AND key = c.key FOR UPDATE;
    v_record := FOUND;
    IF v_record AND r.expires_at <= s.at THEN
      -- Forgotten: it goes now, for its key may come again.
      DELETE FROM webhook_record WHERE sender_id = s.sender_id AND key = c.key;
      s.entries := s.entries - 1;
      IF r.state NOT IN ('applied', 'stale') THEN s.pending_bytes := s.pending_bytes - r.body_bytes; END IF;
      v_record := false;
    END IF;
  END IF;
  IF c.nonce IS NOT NULL THEN
    SELECT * INTO n FROM webhook_nonce WHERE keyid_id = s.keyid_id AND nonce = c.nonce;
    v_known := coalesce(n.expires_at > s.at, false);
    IF v_known THEN
      -- Bound to this event and that not safe: goes on, as a retry. No record: it ended and was forgotten, or was
      -- stale and left none; either way it was answered.
      v_resent := n.record_key IS NOT DISTINCT FROM c.key AND n.accept_id = c.caller;
      IF NOT v_resent AND NOT (n.record_key IS NOT DISTINCT FROM c.key AND v_record AND NOT r.acked) THEN
        s.kind := 'replayed';
      END IF;
    ELSE
      s := webhook_room_nonces(s, c);
      IF s.is_full THEN s.kind := 'rate-abuse'; END IF;
    END IF;
  END IF;
  IF s.kind IS NULL THEN
    IF c.key IS NULL THEN
      s.kind := 'burned';
    ELSIF v_record THEN
      s := webhook_on_record(s, c, r);
    ELSE
      s := webhook_decide(s, c, p_bodies);
    END IF;
    IF c.nonce IS NOT NULL AND NOT v_resent AND s.kind <> 'over-cap' THEN
      INSERT INTO webhook_nonce (keyid_id, nonce, record_key, accept_id, expires_at)
      VALUES (s.keyid_id, c.nonce, c.key, c.caller, CASE WHEN v_known THEN n.expires_at ELSE s.at + c.nonce_ms END)
      ON CONFLICT (keyid_id, nonce) DO UPDATE SET record_key = excluded.record_key, accept_id = excluded.accept_id,
        expires_at = excluded.expires_at
      RETURNING xmax = 0 INTO v_new;
      IF v_new THEN
        s.nonces := s.nonces + 1;
        s.all_nonces := s.all_nonces + 1;
      END IF;
    END IF;
  END IF;
  RETURN webhook_pressure(s, c);
END $$;
`;
