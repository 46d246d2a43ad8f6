import { ENTER, PLANS, hasRoom, isAhead, markLife } from './words.ts';

/**
 * One fresh event alone: what `webhook_run_sets` does to many, by single rows. A statement over a set costs several
 * times as much to begin, and a lone call would wait for it. Few statements and few expressions: each is set up again in
 * each transaction, and that is most of what they cost.
 *
 *     webhook_run_lone  the call's members, terms, offset, turn, most, lock ms, sync → the answer in the form of
 *                       `webhook_run_sets`; null: not fresh, nothing done
 *
 * The same locks in the same order, the same looks, the same rows (`fresh.ts`). Locks are strict functions: a number
 * that is null is not locked. Only a snapshot taken after the locks sees what others have committed: so the looks are a
 * statement of their own.
 *
 *     webhook_sweep_lone  clock, sender, key id, turn, most → a few expired rows deleted, in the sender's turn
 */
export const FRESH_LONE: string = `
CREATE FUNCTION webhook_sweep_lone(p_at bigint, p_sender integer, p_keyid integer, p_turn integer, p_most integer)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  s webhook_step;
BEGIN
  s.at := p_at;
  s.sender_id := p_sender; s.keyid_id := p_keyid;
  s.entries := 0; s.pending_bytes := 0; s.nonces := 0; s.all_nonces := 0;
  s := webhook_purge(s, p_turn, p_most);
  s.changes := ARRAY[ROW(p_sender, coalesce(p_keyid, 0), s.entries, s.pending_bytes, s.nonces)::webhook_change,
    ROW(0, 0, 0, 0, s.all_nonces)::webhook_change];
  PERFORM webhook_flush(s);
END $$;
CREATE FUNCTION webhook_run_lone(p_sender text, p_keyid text, p_key text, p_caller text, p_nonce text, p_nonce_ms bigint,
  p_raw_hash text, p_canonical_hash text, p_task text, p_instant text, p_instant_ms bigint, p_terminal boolean,
  p_notification text, p_terms bigint[], p_body bytea, p_offset bigint, p_turn integer, p_most integer,
  p_lock_ms integer, p_sync text) RETURNS text
LANGUAGE plpgsql
${PLANS} AS $$
DECLARE
  v_inbox boolean := p_terms[1] = 1;
  b record;
  l record;
BEGIN
  ${ENTER}
  LOOP
    SELECT x.*, webhook_class('sender') AS senders, webhook_class('bucket') AS buckets, webhook_class('task') AS tasks,
      least(k, n, i) AS low, greatest(k, n, i) AS high, k + n + i - least(k, n, i) - greatest(k, n, i) AS middle INTO b
      FROM (SELECT w.id AS sender_id, e.id AS keyid_id, webhook_bucket(w.id, 'k' || p_key, 128) AS k,
        webhook_bucket(w.id, 'n' || p_nonce, 128) AS n, webhook_bucket(w.id, 'i' || p_notification, 128) AS i,
        webhook_bucket(w.id, p_task, 65536) AS task
        FROM webhook_sender w LEFT JOIN webhook_keyid e ON e.sender_id = w.id AND e.keyid = p_keyid COLLATE "C"
        WHERE w.url = p_sender COLLATE "C" OFFSET 0) x;
    EXIT WHEN b.sender_id IS NOT NULL AND (p_keyid IS NULL OR b.keyid_id IS NOT NULL);
    PERFORM webhook_register_names(ARRAY[p_sender], ARRAY[p_keyid]);
  END LOOP;
  IF concat(
    pg_advisory_xact_lock_shared(b.senders, b.sender_id)::text, pg_advisory_xact_lock_shared(b.buckets, b.low)::text,
    pg_advisory_xact_lock_shared(b.buckets, b.middle)::text,
    pg_advisory_xact_lock_shared(b.buckets, nullif(b.high, b.low))::text,
    pg_advisory_xact_lock(b.tasks, b.task)::text) IS NULL THEN
    RETURN NULL;
  END IF;
  SELECT webhook_now(p_offset) AS at, t.task_id IS NOT NULL AS task_known, t.expires_at AS task_until,
    webhook_stale(p_instant, p_terminal, t.mark, t.mark_terminal) AS stale,
    coalesce(NOT v_inbox AND t.mark_terminal AND p_instant COLLATE "C" > t.mark, false) AS after_terminal,
    t.holder,
    ${hasRoom({ entries: 'u.entries', bytes: 'u.bytes', nonces: 'u.nonces' }, 'u.all_nonces')} AND
    (SELECT true FROM webhook_record r WHERE r.sender_id = b.sender_id AND r.key = p_key COLLATE "C") IS NULL
    AND (p_nonce IS NULL OR (SELECT true FROM webhook_nonce n
      WHERE n.keyid_id = b.keyid_id AND n.nonce = p_nonce COLLATE "C") IS NULL)
    AND (p_notification IS NULL OR (SELECT true FROM webhook_notification f
      WHERE f.sender_id = b.sender_id AND f.notification_id = p_notification COLLATE "C") IS NULL) AS fresh INTO l
    -- webhook_has_room
    FROM (SELECT sum(entries::float8) AS entries, sum(pending_bytes::float8) AS bytes,
      sum(nonces::float8) FILTER (WHERE keyid_id = b.keyid_id) AS nonces,
      sum(nonces::float8) FILTER (WHERE sender_id = 0) AS all_nonces
      FROM webhook_count WHERE sender_id IN (0, b.sender_id)) u LEFT JOIN LATERAL (SELECT * FROM webhook_task
      WHERE sender_id = b.sender_id AND task_id = p_task COLLATE "C" OFFSET 0) t ON true;
  IF NOT l.fresh OR l.stale OR l.task_until <= l.at THEN RETURN NULL; END IF;
  IF l.holder IS NOT NULL THEN
    PERFORM FROM webhook_record WHERE sender_id = b.sender_id AND key = l.holder AND task_id = p_task COLLATE "C"
      AND state = 'leased' AND lease_until > l.at;
    IF FOUND THEN RETURN NULL; END IF;
  END IF;
  INSERT INTO webhook_record (sender_id, key, state, claim, claimed_by, owner, fence, lease_until, attempts, crashes,
    acked, inserted_at, not_before, parked_until, raw_hash, canonical_hash, task_id, instant, instant_ms, terminal,
    reemission, after_terminal, after_final, ahead, body_bytes, expires_at, body)
  VALUES (b.sender_id, p_key, CASE WHEN v_inbox THEN 'queued' ELSE 'leased' END,
    CASE WHEN v_inbox THEN 'queued' ELSE 'won' END, p_caller, CASE WHEN NOT v_inbox THEN p_caller END,
    CASE WHEN v_inbox THEN 0 ELSE 1 END, CASE WHEN v_inbox THEN 0 ELSE l.at + p_terms[2] END,
    CASE WHEN v_inbox THEN 0 ELSE 1 END, 0, v_inbox, l.at, l.at, 0, decode(p_raw_hash, 'hex'),
    decode(p_canonical_hash, 'hex'), p_task, p_instant, p_instant_ms, coalesce(p_terminal, false), false,
    l.after_terminal, false, ${isAhead('p_instant_ms', 'l.at')}, length(p_body),
    CASE WHEN NOT v_inbox THEN l.at + greatest(p_terms[3], p_terms[2]) END, p_body);
  IF p_nonce IS NOT NULL THEN
    INSERT INTO webhook_nonce (keyid_id, nonce, record_key, accept_id, expires_at)
      VALUES (b.keyid_id, p_nonce, p_key, p_caller, l.at + p_nonce_ms);
  END IF;
  IF p_notification IS NOT NULL THEN
    INSERT INTO webhook_notification (sender_id, notification_id, record_key, expires_at)
      VALUES (b.sender_id, p_notification, p_key, l.at + ${markLife('p_terms[3]')});
  END IF;
  IF l.task_known THEN
    UPDATE webhook_task SET holder = CASE WHEN v_inbox THEN holder ELSE p_key END,
      expires_at = l.at + ${markLife('p_terms[3]')} WHERE sender_id = b.sender_id AND task_id = p_task COLLATE "C";
    IF NOT FOUND THEN RAISE EXCEPTION 'a task was swept' USING ERRCODE = '40001'; END IF;
  ELSIF p_task IS NOT NULL THEN
    INSERT INTO webhook_task (sender_id, task_id, holder, mark, mark_terminal, expires_at)
      VALUES (b.sender_id, p_task, CASE WHEN NOT v_inbox THEN p_key END, NULL, false,
        l.at + ${markLife('p_terms[3]')});
  END IF;
  -- As webhook_flush, in its order.
  INSERT INTO webhook_count AS c (sender_id, keyid_id, stripe, entries, pending_bytes, nonces)
  VALUES (0, 0, pg_backend_pid() % 16, 0, 0, (p_nonce IS NOT NULL)::integer),
    (b.sender_id, coalesce(b.keyid_id, 0), pg_backend_pid() % 16, 1 + (p_notification IS NOT NULL)::integer
      + (p_task IS NOT NULL AND NOT l.task_known)::integer, length(p_body), (p_nonce IS NOT NULL)::integer)
  ON CONFLICT (sender_id, keyid_id, stripe) DO UPDATE SET entries = c.entries + excluded.entries,
    pending_bytes = c.pending_bytes + excluded.pending_bytes, nonces = c.nonces + excluded.nonces;
  IF p_turn >= 0 THEN PERFORM webhook_sweep_lone(l.at, b.sender_id, b.keyid_id, p_turn, p_most); END IF;
  RETURN (l.after_terminal::integer + 2 * ${isAhead('p_instant_ms', 'l.at')}::integer)::text || '1';
END $$;
`;
