import { markLife } from './words.ts';

/**
 * What the rules work with.
 *
 *     webhook_call  one call of a store's method, as it comes in JSON (`call.ts`); absent members are null
 *     webhook_head  a record without its body
 *     webhook_step  the transaction so far: the store's clock, what is locked, what the sender has used, the answer.
 *                   Passed in and returned by every rule: functions have no other memory
 *
 *     webhook_now       offset → the store's clock, Unix ms; read when all locks are held, for waiting takes time
 *     webhook_bucket    sender, resource, how many → one of so many numbers: what is locked in its place (`run.ts`)
 *     webhook_class     name → the first number of an advisory lock: the schema's own
 *     webhook_must_lock step, task → fails with 40001 where its bucket is not locked: the record changed its task
 *                       between the look that chose the locks and the locks; the call is made again
 *     webhook_add       step, key id, three differences → noted, for the step's sender
 *     webhook_flush     step → what was noted, added to this backend's stripes: last of all, sorted, for counts are what
 *                       all transactions write
 *     webhook_stale     instant, terminal, mark, mark terminal → contract.md §9.7
 *     webhook_find_task step, task → its row; an expired one is absent. Expiry is judged after the look, here and wherever
 *                       a row is found by its key: in the look's condition it would lead planners to the expiry's index
 *     webhook_holder    step, task row → held: a live lease on another record holds the task (handlers of one task
 *                       never overlap); parked_until: how long workers leave alone what waits for it
 *     webhook_free_task sender, task → the oldest record that waits for it is due
 *     webhook_hold_parked sender, task, key → that record's row, but for that of the key, is locked now, without waiting,
 *                       or there is none; false: somebody else has it locked
 *     webhook_save_task, webhook_won: the task's row written; the answer "won"
 *
 * `xmax = 0` in a RETURNING says that the row is new, not replaced: only then it is counted. Rows that expired count
 * until they are deleted. What is more than an expression is PL/pgSQL, whose plans are kept: an SQL function is planned
 * at each call.
 */
export const STEP: string = `
CREATE TYPE webhook_call AS (
  op text, sender text COLLATE "C", key text COLLATE "C", caller text COLLATE "C", mode text,
  keyid text COLLATE "C", nonce text COLLATE "C", nonce_ms bigint,
  body_at integer, body_bytes integer, raw_hash text, canonical_hash text, on_changed text,
  task_id text COLLATE "C", instant text COLLATE "C", instant_ms bigint, terminal boolean,
  notification_id text COLLATE "C", media_buys text[], final boolean,
  lease_ms bigint, retention_ms bigint, attempts integer, crashes integer,
  permanent boolean, unstarted boolean, backoff_ms bigint, error text COLLATE "C",
  max_records bigint, max_bytes bigint, max_key_nonces bigint, max_nonces bigint
);
CREATE VIEW webhook_head AS SELECT
  seq, inserted_at, not_before, lease_until, parked_until, expires_at, instant_ms, sender_id, fence, attempts,
  crashes, body_bytes, acked, terminal, reemission, after_terminal, after_final, ahead, key, state, claim, claimed_by,
  owner, raw_hash, canonical_hash, task_id, instant, last_error
  FROM webhook_record;
CREATE TYPE webhook_change AS (
  sender_id integer, keyid_id integer, entries bigint, pending_bytes bigint, nonces bigint
);
CREATE TYPE webhook_step AS (
  at bigint, turn integer, most integer, tasks integer[], exact integer[], ended bigint[],
  sender_id integer, sender_known boolean, keyid_id integer, keyid_known boolean, all_known boolean,
  entries bigint, pending_bytes bigint, nonces bigint, all_nonces bigint,
  entries_before bigint, bytes_before bigint, nonces_before bigint, all_before bigint, changes webhook_change[],
  is_full boolean, held boolean, parked_until bigint,
  kind text, more jsonb, pressure text[], body bytea
);
CREATE FUNCTION webhook_now(p_offset bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + p_offset
$$;
CREATE FUNCTION webhook_bucket(p_sender integer, p_resource text, p_most integer) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
  SELECT hashtext((p_sender::text || ' ' || p_resource) COLLATE "C") & (p_most - 1)
$$;
-- Immutable: the functions that ask have their schema fixed (SET search_path), so that plans can keep the number.
CREATE FUNCTION webhook_class(p_name text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT hashtext('proto-webhooks ' || p_name || ' ' || current_schema())
$$;
CREATE FUNCTION webhook_must_lock(s webhook_step, p_task text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF p_task IS NOT NULL AND NOT webhook_bucket(s.sender_id, p_task, 65536) = ANY (s.tasks) THEN
    RAISE EXCEPTION 'the record changed before it was locked' USING ERRCODE = '40001';
  END IF;
END $$;
CREATE FUNCTION webhook_add(s webhook_step, p_keyid integer, p_entries bigint, p_bytes bigint, p_nonces bigint)
RETURNS webhook_step LANGUAGE plpgsql AS $$
BEGIN
  IF p_entries <> 0 OR p_bytes <> 0 OR p_nonces <> 0 THEN
    s.changes := s.changes || ROW(s.sender_id, p_keyid, p_entries, p_bytes, p_nonces)::webhook_change;
  END IF;
  RETURN s;
END $$;
CREATE FUNCTION webhook_flush(s webhook_step) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO webhook_count AS n (sender_id, keyid_id, stripe, entries, pending_bytes, nonces)
    SELECT c.sender_id, c.keyid_id, pg_backend_pid() % 16, sum(c.entries), sum(c.pending_bytes), sum(c.nonces)
    FROM unnest(s.changes) c GROUP BY 1, 2 ORDER BY 1, 2
  ON CONFLICT (sender_id, keyid_id, stripe) DO UPDATE SET entries = n.entries + excluded.entries,
    pending_bytes = n.pending_bytes + excluded.pending_bytes, nonces = n.nonces + excluded.nonces;
END $$;
CREATE FUNCTION webhook_stale(p_instant text, p_terminal boolean, p_mark text, p_mark_terminal boolean)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(p_instant < p_mark COLLATE "C" OR (p_instant = p_mark AND p_mark_terminal AND NOT p_terminal), false)
$$;
CREATE FUNCTION webhook_find_task(s webhook_step, p_task text) RETURNS webhook_task LANGUAGE plpgsql AS $$
DECLARE
  t webhook_task;
BEGIN
  SELECT * INTO t FROM webhook_task WHERE sender_id = s.sender_id AND task_id = p_task;
  IF t.expires_at <= s.at THEN t := NULL; END IF;
  RETURN t;
END $$;
CREATE FUNCTION webhook_holder(s webhook_step, t webhook_task) RETURNS webhook_step LANGUAGE plpgsql AS $$
BEGIN
  s.held := false;
  s.parked_until := 0;
  IF t.holder IS NULL THEN RETURN s; END IF;
  -- A key that was forgotten may have come again for another task. One that was acknowledged comes to an end that
  -- frees the task, if only under a worker; one of inline mode may be left to its sender for ever.
  SELECT true, CASE WHEN h.acked THEN s.at + 600000 ELSE h.lease_until END INTO s.held, s.parked_until
    FROM webhook_record h
    WHERE h.sender_id = t.sender_id AND h.key = t.holder AND h.task_id = t.task_id
      AND h.state = 'leased' AND h.lease_until > s.at;
  s.held := coalesce(s.held, false);
  s.parked_until := coalesce(s.parked_until, 0);
  RETURN s;
END $$;
CREATE FUNCTION webhook_save_task(s webhook_step, t webhook_task, p_retention bigint)
RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_new boolean;
BEGIN
  INSERT INTO webhook_task (sender_id, task_id, holder, mark, mark_terminal, expires_at)
  VALUES (s.sender_id, t.task_id, t.holder, t.mark, coalesce(t.mark_terminal, false),
    s.at + ${markLife('p_retention')})
  ON CONFLICT (sender_id, task_id) DO UPDATE SET holder = excluded.holder, mark = excluded.mark,
    mark_terminal = excluded.mark_terminal, expires_at = excluded.expires_at
  RETURNING xmax = 0 INTO v_new;
  IF v_new THEN s.entries := s.entries + 1; END IF;
  RETURN s;
END $$;
CREATE FUNCTION webhook_free_task(p_sender integer, p_task text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE webhook_record SET parked_until = 0 WHERE sender_id = p_sender AND parked_until > 0 AND key = (
    SELECT key FROM webhook_record WHERE sender_id = p_sender AND task_id = p_task AND parked_until > 0
    ORDER BY seq LIMIT 1);
END $$;
CREATE FUNCTION webhook_hold_parked(p_sender integer, p_task text, p_but text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_key text;
BEGIN
  SELECT key INTO v_key FROM webhook_record
    WHERE sender_id = p_sender AND task_id = p_task AND parked_until > 0 AND key <> p_but ORDER BY seq LIMIT 1;
  IF v_key IS NULL THEN RETURN true; END IF;
  PERFORM FROM webhook_record WHERE sender_id = p_sender AND key = v_key FOR UPDATE SKIP LOCKED;
  RETURN FOUND;
END $$;
CREATE FUNCTION webhook_won(r webhook_head, p_changed boolean) RETURNS jsonb LANGUAGE sql AS $$
  SELECT jsonb_build_object('changed', p_changed, 'lease', jsonb_build_object('fence', r.fence, 'attempt', r.attempts),
    'reemission', r.reemission, 'afterTerminal', r.after_terminal, 'afterFinal', r.after_final, 'ahead', r.ahead)
$$;
`;
