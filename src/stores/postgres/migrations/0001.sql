
CREATE TABLE webhook_sender (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  url text COLLATE "C" NOT NULL UNIQUE
);
CREATE TABLE webhook_keyid (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  sender_id integer NOT NULL,
  keyid text COLLATE "C" NOT NULL,
  UNIQUE (sender_id, keyid)
);
CREATE TABLE webhook_count (
  sender_id integer NOT NULL,
  keyid_id integer NOT NULL,
  stripe integer NOT NULL,
  entries bigint NOT NULL,
  pending_bytes bigint NOT NULL,
  nonces bigint NOT NULL,
  PRIMARY KEY (sender_id, keyid_id, stripe)
) WITH (fillfactor = 25);
CREATE TABLE webhook_nonce (
  expires_at bigint NOT NULL,
  keyid_id integer NOT NULL,
  nonce text COLLATE "C" NOT NULL,
  record_key text COLLATE "C",
  accept_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (keyid_id, nonce)
);
CREATE INDEX webhook_nonce_expiry ON webhook_nonce (keyid_id, expires_at) WHERE expires_at > 0;
CREATE TABLE webhook_record (
  seq bigint GENERATED ALWAYS AS IDENTITY,
  inserted_at bigint NOT NULL,
  not_before bigint NOT NULL,
  lease_until bigint NOT NULL,
  parked_until bigint NOT NULL,
  expires_at bigint,
  instant_ms bigint,
  sender_id integer NOT NULL,
  fence integer NOT NULL,
  attempts integer NOT NULL,
  crashes integer NOT NULL,
  body_bytes integer NOT NULL,
  acked boolean NOT NULL,
  terminal boolean NOT NULL,
  reemission boolean NOT NULL,
  after_terminal boolean NOT NULL,
  after_final boolean NOT NULL,
  ahead boolean NOT NULL,
  key text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  claim text COLLATE "C" NOT NULL,
  claimed_by text COLLATE "C" NOT NULL,
  owner text COLLATE "C",
  raw_hash bytea NOT NULL,
  canonical_hash bytea,
  task_id text COLLATE "C",
  instant text COLLATE "C",
  last_error text COLLATE "C",
  body bytea,
  PRIMARY KEY (sender_id, key)
);
ALTER TABLE webhook_record ALTER body SET STORAGE EXTERNAL;
CREATE INDEX webhook_record_expiry ON webhook_record (sender_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX webhook_record_due ON webhook_record ((greatest(CASE state WHEN 'queued' THEN not_before ELSE lease_until END, parked_until)), seq) WHERE acked AND state IN ('queued', 'leased');
CREATE INDEX webhook_record_parked ON webhook_record (sender_id, task_id, seq) WHERE parked_until > 0;
CREATE INDEX webhook_record_open ON webhook_record (seq) WHERE state IN ('queued', 'leased', 'dead');
CREATE TABLE webhook_task (
  expires_at bigint NOT NULL,
  sender_id integer NOT NULL,
  mark_terminal boolean NOT NULL,
  task_id text COLLATE "C" NOT NULL,
  holder text COLLATE "C",
  mark text COLLATE "C",
  PRIMARY KEY (sender_id, task_id)
);
CREATE INDEX webhook_task_expiry ON webhook_task (sender_id, expires_at) WHERE expires_at > 0;
CREATE TABLE webhook_notification (
  expires_at bigint NOT NULL,
  sender_id integer NOT NULL,
  notification_id text COLLATE "C" NOT NULL,
  record_key text COLLATE "C" NOT NULL,
  PRIMARY KEY (sender_id, notification_id)
);
CREATE INDEX webhook_notification_expiry ON webhook_notification (sender_id, expires_at) WHERE expires_at > 0;


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
    s.at + greatest(p_retention, 2592000000))
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


CREATE FUNCTION webhook_purge(s webhook_step, p_kind integer, p_most bigint)
RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_rows bigint;
  v_bytes bigint := 0;
BEGIN
  IF p_kind = 0 THEN
    DELETE FROM webhook_nonce WHERE ctid = ANY (ARRAY(SELECT ctid FROM webhook_nonce
      WHERE keyid_id = s.keyid_id AND expires_at > 0 AND expires_at <= s.at
      ORDER BY expires_at LIMIT p_most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    s.nonces := s.nonces - v_rows;
    s.all_nonces := s.all_nonces - v_rows;
    RETURN s;
  ELSIF p_kind = 1 THEN
    WITH gone AS (
      DELETE FROM webhook_record WHERE ctid = ANY (ARRAY(SELECT ctid FROM webhook_record
        WHERE sender_id = s.sender_id AND expires_at <= s.at ORDER BY expires_at LIMIT p_most FOR UPDATE SKIP LOCKED))
      RETURNING CASE WHEN state IN ('applied', 'stale') THEN 0 ELSE body_bytes END AS bytes)
    SELECT count(*), coalesce(sum(bytes), 0) INTO v_rows, v_bytes FROM gone;
  ELSIF p_kind = 2 THEN
    DELETE FROM webhook_task WHERE ctid = ANY (ARRAY(SELECT ctid FROM webhook_task
      WHERE sender_id = s.sender_id AND expires_at > 0 AND expires_at <= s.at
      ORDER BY expires_at LIMIT p_most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_rows = ROW_COUNT;
  ELSE
    DELETE FROM webhook_notification WHERE ctid = ANY (ARRAY(SELECT ctid FROM webhook_notification
      WHERE sender_id = s.sender_id AND expires_at > 0 AND expires_at <= s.at
      ORDER BY expires_at LIMIT p_most FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_rows = ROW_COUNT;
  END IF;
  s.entries := s.entries - v_rows;
  s.pending_bytes := s.pending_bytes - v_bytes;
  RETURN s;
END $$;
CREATE FUNCTION webhook_purge_nonces(s webhook_step, p_most bigint) RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v record;
BEGIN
  FOR v IN
    WITH gone AS (
      DELETE FROM webhook_nonce WHERE ctid = ANY (ARRAY(SELECT n.id FROM webhook_keyid k CROSS JOIN LATERAL (
        SELECT ctid AS id FROM webhook_nonce WHERE keyid_id = k.id AND expires_at > 0 AND expires_at <= s.at
        ORDER BY expires_at LIMIT p_most FOR UPDATE SKIP LOCKED) n LIMIT p_most))
      RETURNING keyid_id)
    SELECT k.sender_id, k.id, count(*) AS gone FROM gone g JOIN webhook_keyid k ON k.id = g.keyid_id
    GROUP BY 1, 2 ORDER BY 1, 2
  LOOP
    s.all_nonces := s.all_nonces - v.gone;
    IF v.id = s.keyid_id THEN
      s.nonces := s.nonces - v.gone;
    ELSE
      s.changes := s.changes || ROW(v.sender_id, v.id, 0, 0, -v.gone)::webhook_change;
    END IF;
  END LOOP;
  RETURN s;
END $$;
CREATE FUNCTION webhook_room_nonces(s webhook_step, c webhook_call) RETURNS webhook_step LANGUAGE plpgsql AS $$
BEGIN
  IF s.nonces >= c.max_key_nonces THEN
    s := webhook_purge(s, 0, least(s.nonces - c.max_key_nonces + 1, 4096));
  END IF;
  IF s.all_nonces >= c.max_nonces THEN
    s := webhook_purge_nonces(s, least(s.all_nonces - c.max_nonces + 1, 4096));
  END IF;
  s.is_full := coalesce(s.nonces >= c.max_key_nonces, false) OR coalesce(s.all_nonces >= c.max_nonces, false);
  RETURN s;
END $$;
CREATE FUNCTION webhook_room_entries(s webhook_step, c webhook_call) RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_most bigint := least(s.entries - c.max_records + 1, 4096);
BEGIN
  FOR v_kind IN 1..3 LOOP
    EXIT WHEN coalesce(s.entries < c.max_records, true);
    s := webhook_purge(s, v_kind, v_most);
  END LOOP;
  s.is_full := coalesce(s.entries >= c.max_records, false);
  RETURN s;
END $$;
-- Bodies differ in size, so bytes are freed by so many records at a time; one refusal pays for at most 4096.
CREATE FUNCTION webhook_room_bytes(s webhook_step, c webhook_call) RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_before bigint;
BEGIN
  FOR v_turn IN 1..16 LOOP
    EXIT WHEN coalesce(s.pending_bytes + c.body_bytes <= c.max_bytes, true);
    v_before := s.entries;
    s := webhook_purge(s, 1, 256);
    EXIT WHEN s.entries = v_before;
  END LOOP;
  s.is_full := coalesce(s.pending_bytes + c.body_bytes > c.max_bytes, false);
  RETURN s;
END $$;
CREATE FUNCTION webhook_near(s webhook_step, c webhook_call) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT array_remove(ARRAY[
    CASE WHEN s.entries >= c.max_records * 0.8 THEN 'records' END,
    CASE WHEN s.pending_bytes >= c.max_bytes * 0.8 THEN 'pending-bytes' END,
    CASE WHEN c.nonce IS NOT NULL AND s.nonces >= c.max_key_nonces * 0.8 THEN 'nonces' END,
    CASE WHEN c.nonce IS NOT NULL AND s.all_nonces >= c.max_nonces * 0.8 THEN 'all-nonces' END], NULL)
$$;
CREATE FUNCTION webhook_pressure(s webhook_step, c webhook_call) RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_near text[] := webhook_near(s, c);
BEGIN
  s.pressure := v_near;
  IF cardinality(v_near) = 0 THEN RETURN s; END IF;
  IF 'records' = ANY (v_near) OR 'pending-bytes' = ANY (v_near) THEN
    FOR v_kind IN 1..3 LOOP s := webhook_purge(s, v_kind, 1024); END LOOP;
  END IF;
  IF 'nonces' = ANY (v_near) THEN s := webhook_purge(s, 0, 1024); END IF;
  IF 'all-nonces' = ANY (v_near) THEN s := webhook_purge_nonces(s, 1024); END IF;
  s.pressure := ARRAY(SELECT n FROM unnest(v_near) n WHERE n = ANY (webhook_near(s, c)));
  RETURN s;
END $$;
CREATE FUNCTION webhook_sweep(p_sender integer, p_most integer, p_offset bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
DECLARE
  s webhook_step;
  v record;
BEGIN
  s.at := webhook_now(p_offset);
  s.sender_id := p_sender;
  s.changes := '{}';
  s.entries := 0; s.pending_bytes := 0; s.all_nonces := 0;
  FOR v_kind IN 1..3 LOOP s := webhook_purge(s, v_kind, p_most); END LOOP;
  FOR v IN SELECT id FROM webhook_keyid WHERE sender_id = p_sender ORDER BY keyid LOOP
    s.keyid_id := v.id;
    s.nonces := 0;
    s := webhook_purge(s, 0, p_most);
    s := webhook_add(s, s.keyid_id, 0, 0, s.nonces);
  END LOOP;
  s := webhook_add(s, 0, s.entries, s.pending_bytes, 0);
  s.sender_id := 0;
  s := webhook_add(s, 0, 0, 0, s.all_nonces);
  PERFORM webhook_flush(s);
  RETURN -s.entries - s.all_nonces;
END $$;


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
  r.ahead := coalesce(r.instant_ms > s.at + 300000, false);
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
  VALUES (s.sender_id, p_id, coalesce(v_key, c.key), s.at + greatest(c.retention_ms, 2592000000))
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
  r.ahead := coalesce(c.instant_ms > s.at + 300000, false);
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
    VALUES (s.sender_id, r.task_id, NULL, r.instant, r.terminal, s.at + greatest(c.retention_ms, 2592000000))
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


CREATE TYPE webhook_fresh AS (
  place integer, sender_id integer, keyid_id integer,
  key text COLLATE "C", caller text COLLATE "C", nonce text COLLATE "C", nonce_ms bigint,
  body_at integer, body_bytes integer, raw_hash bytea, canonical_hash bytea,
  task_id text COLLATE "C", instant text COLLATE "C", instant_ms bigint, terminal boolean,
  notification_id text COLLATE "C", task_known boolean, after_terminal boolean
);
CREATE FUNCTION webhook_register_names(p_senders text[], p_keyids text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO webhook_sender (url) SELECT DISTINCT u COLLATE "C" FROM unnest(p_senders) u ORDER BY 1
    ON CONFLICT DO NOTHING;
  INSERT INTO webhook_keyid (sender_id, keyid)
    SELECT DISTINCT w.id, g.keyid COLLATE "C" FROM unnest(p_senders, p_keyids) g (url, keyid)
    JOIN webhook_sender w ON w.url = g.url COLLATE "C" WHERE g.keyid IS NOT NULL ORDER BY 1, 2 ON CONFLICT DO NOTHING;
END $$;
CREATE FUNCTION webhook_has_room(p_sender integer, p_keyid integer, p_terms bigint[]) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  v_entries float8;
  v_bytes float8;
  v_nonces float8;
  v_all float8;
BEGIN
  -- Sums of bigint are numeric, which costs more than all the rest.
  SELECT sum(entries::float8), sum(pending_bytes::float8), sum(nonces::float8) FILTER (WHERE keyid_id = p_keyid),
    sum(nonces::float8) FILTER (WHERE sender_id = 0)
    INTO v_entries, v_bytes, v_nonces, v_all FROM webhook_count WHERE sender_id IN (0, p_sender);
  RETURN coalesce(v_entries, 0) + 10000 < p_terms[4] / 5 * 4 AND coalesce(v_bytes, 0) + 67108864 < p_terms[5] / 5 * 4 AND coalesce(v_nonces, 0) + 10000 < p_terms[6] / 5 * 4 AND (p_keyid IS NULL OR coalesce(v_all, 0) + 10000 < p_terms[7] / 5 * 4);
END $$;
CREATE FUNCTION webhook_admissible(s webhook_step, p_inbox boolean, p_fresh webhook_fresh[])
RETURNS webhook_fresh[] LANGUAGE plpgsql AS $$
BEGIN
  -- OFFSET 0, and looks of their own: by the whole key for each call, whatever size planners take the tables for.
  RETURN ARRAY(
    SELECT ROW(f.place, f.sender_id, f.keyid_id, f.key, f.caller, f.nonce, f.nonce_ms, f.body_at, f.body_bytes,
      f.raw_hash, f.canonical_hash, f.task_id, f.instant, f.instant_ms, f.terminal, f.notification_id,
      t.task_id IS NOT NULL, coalesce(NOT p_inbox AND t.mark_terminal AND f.instant > t.mark, false))::webhook_fresh
    FROM unnest(p_fresh) f
    LEFT JOIN LATERAL (SELECT * FROM webhook_task k
      WHERE k.sender_id = f.sender_id AND k.task_id = f.task_id OFFSET 0) t ON true
    WHERE (SELECT true FROM webhook_record r WHERE r.sender_id = f.sender_id AND r.key = f.key) IS NULL
      AND (f.nonce IS NULL
        OR (SELECT true FROM webhook_nonce n WHERE n.keyid_id = f.keyid_id AND n.nonce = f.nonce) IS NULL)
      AND (f.notification_id IS NULL OR (SELECT true FROM webhook_notification n
        WHERE n.sender_id = f.sender_id AND n.notification_id = f.notification_id) IS NULL)
      AND (t.task_id IS NULL OR (t.expires_at > s.at
        AND NOT webhook_stale(f.instant, f.terminal, t.mark, t.mark_terminal)
        AND (t.holder IS NULL OR (SELECT true FROM webhook_record h
          WHERE h.sender_id = t.sender_id AND h.key = t.holder AND h.task_id = t.task_id
            AND h.state = 'leased' AND h.lease_until > s.at) IS NULL))));
END $$;
CREATE FUNCTION webhook_admit(s webhook_step, p_terms bigint[], p_fresh webhook_fresh[], p_bodies bytea)
RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_inbox boolean := p_terms[1] = 1;
  v_tasks_until bigint := s.at + greatest(p_terms[3], 2592000000);
  v_state text := CASE WHEN v_inbox THEN 'queued' ELSE 'leased' END;
  v_claim text := CASE WHEN v_inbox THEN 'queued' ELSE 'won' END;
  v_fence integer := CASE WHEN v_inbox THEN 0 ELSE 1 END;
  v_lease_until bigint := CASE WHEN v_inbox THEN 0 ELSE s.at + p_terms[2] END;
  v_expires_at bigint := CASE WHEN NOT v_inbox THEN s.at + greatest(p_terms[3], p_terms[2]) END;
  v_nonces bigint;
  v_notifications bigint;
  v_new bigint;
  v_old bigint;
  v_held bigint;
BEGIN
  s.changes := s.changes || ARRAY(SELECT ROW(f.sender_id, coalesce(f.keyid_id, 0),
      count(*) + count(f.notification_id) + count(f.task_id) - count(*) FILTER (WHERE f.task_known),
      sum(f.body_bytes), count(f.nonce))::webhook_change
    FROM unnest(p_fresh) f GROUP BY f.sender_id, f.keyid_id);
  SELECT count(nonce), count(notification_id), count(*) FILTER (WHERE NOT task_known AND task_id IS NOT NULL),
    count(*) FILTER (WHERE task_known)
    INTO v_nonces, v_notifications, v_new, v_old FROM unnest(p_fresh);
  INSERT INTO webhook_record (sender_id, key, state, claim, claimed_by, owner, fence, lease_until, attempts, crashes,
    acked, inserted_at, not_before, parked_until, raw_hash, canonical_hash, task_id, instant, instant_ms, terminal,
    reemission, after_terminal, after_final, ahead, body_bytes, expires_at, body)
  SELECT f.sender_id, f.key, v_state, v_claim, f.caller, CASE WHEN NOT v_inbox THEN f.caller END, v_fence,
    v_lease_until, v_fence, 0, v_inbox, s.at, s.at, 0, f.raw_hash, f.canonical_hash, f.task_id, f.instant,
    f.instant_ms, coalesce(f.terminal, false), false, f.after_terminal, false,
    coalesce(f.instant_ms > s.at + 300000, false), f.body_bytes, v_expires_at,
    substring(p_bodies FROM f.body_at + 1 FOR f.body_bytes)
  FROM unnest(p_fresh) f ORDER BY f.sender_id, f.key;
  IF v_nonces > 0 THEN
    INSERT INTO webhook_nonce (keyid_id, nonce, record_key, accept_id, expires_at)
      SELECT f.keyid_id, f.nonce, f.key, f.caller, s.at + f.nonce_ms FROM unnest(p_fresh) f
      WHERE f.nonce IS NOT NULL ORDER BY f.keyid_id, f.nonce;
  END IF;
  IF v_notifications > 0 THEN
    INSERT INTO webhook_notification (sender_id, notification_id, record_key, expires_at)
      SELECT f.sender_id, f.notification_id, f.key, v_tasks_until FROM unnest(p_fresh) f
      WHERE f.notification_id IS NOT NULL ORDER BY f.sender_id, f.notification_id;
  END IF;
  IF v_new > 0 THEN
    INSERT INTO webhook_task (sender_id, task_id, holder, mark, mark_terminal, expires_at)
      SELECT f.sender_id, f.task_id, CASE WHEN NOT v_inbox THEN f.key END, NULL, false, v_tasks_until
      FROM unnest(p_fresh) f WHERE f.task_id IS NOT NULL AND NOT f.task_known;
  END IF;
  IF v_old > 0 THEN
    UPDATE webhook_task t SET holder = CASE WHEN v_inbox THEN t.holder ELSE f.key END, expires_at = v_tasks_until
      FROM unnest(p_fresh) f WHERE f.task_known AND t.sender_id = f.sender_id AND t.task_id = f.task_id;
    GET DIAGNOSTICS v_held = ROW_COUNT;
    -- It expired a moment ago, and a sweep was faster: made again, the call finds none.
    IF v_held < v_old THEN RAISE EXCEPTION 'a task was swept' USING ERRCODE = '40001'; END IF;
  END IF;
  IF v_nonces > 0 THEN s.changes := s.changes || ROW(0, 0, 0, 0, v_nonces)::webhook_change; END IF;
  RETURN s;
END $$;


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
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_inbox boolean := p_terms[1] = 1;
  b record;
  l record;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' OR current_setting('synchronous_commit') <> p_sync
    OR set_config('lock_timeout', p_lock_ms::text, true) IS NULL THEN
    PERFORM webhook_enter(p_lock_ms, p_sync);
  END IF;
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
    coalesce(u.entries, 0) + 10000 < p_terms[4] / 5 * 4 AND coalesce(u.bytes, 0) + 67108864 < p_terms[5] / 5 * 4 AND coalesce(u.nonces, 0) + 10000 < p_terms[6] / 5 * 4 AND (p_keyid IS NULL OR coalesce(u.all_nonces, 0) + 10000 < p_terms[7] / 5 * 4) AND
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
    l.after_terminal, false, coalesce(p_instant_ms > l.at + 300000, false), length(p_body),
    CASE WHEN NOT v_inbox THEN l.at + greatest(p_terms[3], p_terms[2]) END, p_body);
  IF p_nonce IS NOT NULL THEN
    INSERT INTO webhook_nonce (keyid_id, nonce, record_key, accept_id, expires_at)
      VALUES (b.keyid_id, p_nonce, p_key, p_caller, l.at + p_nonce_ms);
  END IF;
  IF p_notification IS NOT NULL THEN
    INSERT INTO webhook_notification (sender_id, notification_id, record_key, expires_at)
      VALUES (b.sender_id, p_notification, p_key, l.at + greatest(p_terms[3], 2592000000));
  END IF;
  IF l.task_known THEN
    UPDATE webhook_task SET holder = CASE WHEN v_inbox THEN holder ELSE p_key END,
      expires_at = l.at + greatest(p_terms[3], 2592000000) WHERE sender_id = b.sender_id AND task_id = p_task COLLATE "C";
    IF NOT FOUND THEN RAISE EXCEPTION 'a task was swept' USING ERRCODE = '40001'; END IF;
  ELSIF p_task IS NOT NULL THEN
    INSERT INTO webhook_task (sender_id, task_id, holder, mark, mark_terminal, expires_at)
      VALUES (b.sender_id, p_task, CASE WHEN NOT v_inbox THEN p_key END, NULL, false,
        l.at + greatest(p_terms[3], 2592000000));
  END IF;
  -- As webhook_flush, in its order.
  INSERT INTO webhook_count AS c (sender_id, keyid_id, stripe, entries, pending_bytes, nonces)
  VALUES (0, 0, pg_backend_pid() % 16, 0, 0, (p_nonce IS NOT NULL)::integer),
    (b.sender_id, coalesce(b.keyid_id, 0), pg_backend_pid() % 16, 1 + (p_notification IS NOT NULL)::integer
      + (p_task IS NOT NULL AND NOT l.task_known)::integer, length(p_body), (p_nonce IS NOT NULL)::integer)
  ON CONFLICT (sender_id, keyid_id, stripe) DO UPDATE SET entries = c.entries + excluded.entries,
    pending_bytes = c.pending_bytes + excluded.pending_bytes, nonces = c.nonces + excluded.nonces;
  IF p_turn >= 0 THEN PERFORM webhook_sweep_lone(l.at, b.sender_id, b.keyid_id, p_turn, p_most); END IF;
  RETURN (l.after_terminal::integer + 2 * coalesce(p_instant_ms > l.at + 300000, false)::integer)::text || '1';
END $$;


CREATE TYPE webhook_ended AS (
  place integer, sender_id integer, task_id text COLLATE "C", instant text COLLATE "C", terminal boolean,
  body_bytes integer, retention bigint
);
CREATE FUNCTION webhook_guard(p_sender integer, p_key text, p_task text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT webhook_bucket(p_sender, coalesce(p_task, chr(1) || p_key), 65536)
$$;
CREATE FUNCTION webhook_end_all(s webhook_step, p_senders integer[], p_keys text[], p_owners text[],
  p_retentions bigint[]) RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_ended webhook_ended[];
  v_marks bigint;
  v_marked bigint;
  v_guarded boolean;
  v record;
BEGIN
  WITH ended AS (
    UPDATE webhook_record r SET state = 'applied', acked = true, body = NULL, expires_at = s.at + f.retention
      FROM unnest(p_senders, p_keys, p_owners, p_retentions) WITH ORDINALITY f (sender, key, owner, retention, place)
      WHERE r.sender_id = f.sender AND r.key = f.key COLLATE "C" AND r.owner = f.owner COLLATE "C"
        AND r.state || '' = 'leased' AND r.lease_until > s.at AND (r.expires_at > s.at) IS NOT FALSE
      RETURNING f.place, r.sender_id, r.key, r.task_id, r.instant, r.terminal, r.ahead, r.body_bytes, f.retention)
  SELECT array_agg(ROW(place, sender_id, task_id, CASE WHEN NOT ahead THEN instant END, terminal, body_bytes,
      retention)::webhook_ended), array_agg(place),
    count(DISTINCT (sender_id, task_id)) FILTER (WHERE task_id IS NOT NULL AND instant IS NOT NULL AND NOT ahead),
    bool_and(webhook_guard(sender_id, key, task_id) = ANY (s.tasks))
    INTO v_ended, s.ended, v_marks, v_guarded FROM ended;
  IF v_ended IS NULL THEN RETURN s; END IF;
  IF NOT v_guarded THEN
    RAISE EXCEPTION 'the record changed before it was locked' USING ERRCODE = '40001';
  END IF;
  s.changes := s.changes || ARRAY(SELECT ROW(sender_id, 0, 0, -sum(body_bytes), 0)::webhook_change
    FROM unnest(v_ended) GROUP BY sender_id);
  IF v_marks > 0 THEN
    -- Never back: a store's clock that was set back can make a lost lease look live.
    UPDATE webhook_task t SET mark = d.instant, mark_terminal = d.terminal,
      expires_at = s.at + greatest(d.retention, 2592000000), holder = CASE WHEN t.expires_at > s.at THEN t.holder END
      FROM (SELECT DISTINCT ON (sender_id, task_id) * FROM unnest(v_ended)
        WHERE task_id IS NOT NULL AND instant IS NOT NULL ORDER BY sender_id, task_id, instant DESC) d
      WHERE t.sender_id = d.sender_id AND t.task_id = d.task_id
        AND ((t.expires_at <= s.at) IS TRUE OR (t.mark <= d.instant) IS NOT FALSE);
    GET DIAGNOSTICS v_marked = ROW_COUNT;
    IF v_marked < v_marks THEN
      -- Swept meanwhile, or it has a newer mark.
      FOR v IN
        INSERT INTO webhook_task (sender_id, task_id, holder, mark, mark_terminal, expires_at)
          SELECT DISTINCT ON (sender_id, task_id) sender_id, task_id, NULL, instant, terminal,
            s.at + greatest(retention, 2592000000)
          FROM unnest(v_ended) WHERE task_id IS NOT NULL AND instant IS NOT NULL
          ORDER BY sender_id, task_id, instant DESC
          ON CONFLICT DO NOTHING RETURNING sender_id
      LOOP
        s.changes := s.changes || ROW(v.sender_id, 0, 1, 0, 0)::webhook_change;
      END LOOP;
    END IF;
  END IF;
  UPDATE webhook_record r SET parked_until = 0 FROM unnest(v_ended) d CROSS JOIN LATERAL (
      SELECT p.key FROM webhook_record p WHERE p.sender_id = d.sender_id AND p.task_id = d.task_id
        AND p.parked_until > 0 ORDER BY p.seq LIMIT 1) w
    WHERE r.sender_id = d.sender_id AND r.key = w.key AND r.parked_until > 0;
  RETURN s;
END $$;
CREATE FUNCTION webhook_run_done(p_sender text, p_key text, p_owner text, p_retention bigint, p_offset bigint,
  p_lock_ms integer, p_sync text) RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  b record;
  r record;
  v_at bigint;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' OR current_setting('synchronous_commit') <> p_sync
    OR set_config('lock_timeout', p_lock_ms::text, true) IS NULL THEN
    PERFORM webhook_enter(p_lock_ms, p_sync);
  END IF;
  SELECT w.id AS sender_id, h.task_id, webhook_guard(w.id, p_key, h.task_id) AS guard INTO b
    FROM webhook_sender w CROSS JOIN LATERAL (SELECT task_id FROM webhook_record
      WHERE sender_id = w.id AND key = p_key COLLATE "C" OFFSET 0) h WHERE w.url = p_sender COLLATE "C";
  IF pg_advisory_xact_lock(webhook_class('task'), b.guard)::text IS NULL THEN RETURN NULL; END IF;
  v_at := webhook_now(p_offset);
  UPDATE webhook_record SET state = 'applied', acked = true, body = NULL, expires_at = v_at + p_retention
    WHERE sender_id = b.sender_id AND key = p_key COLLATE "C" AND owner = p_owner COLLATE "C"
      AND state || '' = 'leased' AND lease_until > v_at AND (expires_at > v_at) IS NOT FALSE
    RETURNING task_id, CASE WHEN NOT ahead THEN instant END AS mark, terminal, body_bytes, 0 AS entries INTO r;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF r.task_id IS NOT NULL THEN
    IF r.task_id IS DISTINCT FROM b.task_id THEN
      RAISE EXCEPTION 'the record changed before it was locked' USING ERRCODE = '40001';
    END IF;
    IF r.mark IS NOT NULL THEN
      UPDATE webhook_task SET mark = r.mark, mark_terminal = r.terminal,
        expires_at = v_at + greatest(p_retention, 2592000000), holder = CASE WHEN expires_at > v_at THEN holder END
        WHERE sender_id = b.sender_id AND task_id = r.task_id
          AND ((expires_at <= v_at) IS TRUE OR (mark <= r.mark) IS NOT FALSE);
      IF NOT FOUND THEN
        INSERT INTO webhook_task (sender_id, task_id, holder, mark, mark_terminal, expires_at)
          VALUES (b.sender_id, r.task_id, NULL, r.mark, r.terminal, v_at + greatest(p_retention, 2592000000))
          ON CONFLICT DO NOTHING;
        IF FOUND THEN r.entries := 1; END IF;
      END IF;
    END IF;
    PERFORM webhook_free_task(b.sender_id, r.task_id);
  END IF;
  INSERT INTO webhook_count AS c (sender_id, keyid_id, stripe, entries, pending_bytes, nonces)
    VALUES (b.sender_id, 0, pg_backend_pid() % 16, r.entries, -r.body_bytes, 0)
    ON CONFLICT (sender_id, keyid_id, stripe) DO UPDATE SET entries = c.entries + excluded.entries,
      pending_bytes = c.pending_bytes + excluded.pending_bytes;
  RETURN '1';
END $$;


CREATE FUNCTION webhook_enter(p_lock_ms integer, p_sync text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_levels text[] := '{off,local,remote_write,on,remote_apply}';
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'the transaction must be READ COMMITTED' USING ERRCODE = 'PW002';
  END IF;
  PERFORM set_config('lock_timeout', p_lock_ms::text, true);
  -- Somebody may have weakened it since the store was opened.
  IF array_position(v_levels, current_setting('synchronous_commit')) < array_position(v_levels, p_sync) THEN
    PERFORM set_config('synchronous_commit', p_sync, true);
  END IF;
END $$;
CREATE FUNCTION webhook_register(p_calls webhook_call[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO webhook_sender (url)
    SELECT DISTINCT c.sender FROM unnest(p_calls) c
    WHERE c.op = 'accept' AND NOT EXISTS (SELECT FROM webhook_sender w WHERE w.url = c.sender)
    ORDER BY 1 ON CONFLICT DO NOTHING;
  INSERT INTO webhook_keyid (sender_id, keyid)
    SELECT DISTINCT w.id, c.keyid FROM unnest(p_calls) c JOIN webhook_sender w ON w.url = c.sender
    WHERE c.keyid IS NOT NULL
      AND NOT EXISTS (SELECT FROM webhook_keyid k WHERE k.sender_id = w.id AND k.keyid = c.keyid)
    ORDER BY 1, 2 ON CONFLICT DO NOTHING;
END $$;
CREATE FUNCTION webhook_lock_buckets(p_class integer, p_alone integer[], p_shared integer[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  -- What is sorted below is locked above, row by row. Locks are strict functions: a number that is null is not locked.
  IF cardinality(p_shared) > 0 AND cardinality(p_alone) > 0 THEN
    PERFORM CASE WHEN x.alone THEN pg_advisory_xact_lock(p_class, x.bucket)
      ELSE pg_advisory_xact_lock_shared(p_class, x.bucket) END
    FROM (SELECT bucket, bool_or(alone) AS alone FROM (SELECT unnest(p_alone) AS bucket, true AS alone
      UNION ALL SELECT unnest(p_shared), false) y GROUP BY bucket ORDER BY bucket) x;
  ELSIF cardinality(p_shared) > 0 THEN
    PERFORM pg_advisory_xact_lock_shared(p_class, x.bucket)
      FROM (SELECT DISTINCT unnest(p_shared) AS bucket ORDER BY 1) x;
  ELSIF cardinality(p_alone) > 0 THEN
    PERFORM pg_advisory_xact_lock(p_class, x.bucket) FROM (SELECT DISTINCT unnest(p_alone) AS bucket ORDER BY 1) x;
  END IF;
END $$;
CREATE FUNCTION webhook_lock_senders(p_calls webhook_call[], p_senders integer[]) RETURNS integer[]
LANGUAGE plpgsql AS $$
DECLARE
  v_class integer := webhook_class('sender');
  v_exact integer[] := '{}';
  v record;
BEGIN
  IF cardinality(p_calls) = 0 THEN
    PERFORM pg_advisory_xact_lock_shared(v_class, x.id)
      FROM (SELECT DISTINCT unnest(p_senders) AS id ORDER BY 1) x WHERE x.id IS NOT NULL;
    RETURN v_exact;
  END IF;
  FOR v IN
    SELECT x.id, bool_or(x.near) AS near FROM (
    SELECT unnest(p_senders) AS id, false AS near UNION ALL
    SELECT w.id, coalesce(e.entries + 10000 >= c.records OR e.bytes + 67108864 >= c.bytes OR n.nonces + 10000 >= c.nonces, false)
    FROM (SELECT sender, keyid, min(max_records) AS records, min(max_bytes) AS bytes, min(max_key_nonces) AS nonces
      FROM unnest(p_calls) WHERE op = 'accept' GROUP BY sender, keyid) c
    JOIN webhook_sender w ON w.url = c.sender
    LEFT JOIN webhook_keyid k ON k.sender_id = w.id AND k.keyid = c.keyid
    CROSS JOIN LATERAL (SELECT coalesce(sum(entries), 0) AS entries, coalesce(sum(pending_bytes), 0) AS bytes
      FROM webhook_count WHERE sender_id = w.id) e
    CROSS JOIN LATERAL (SELECT coalesce(sum(nonces), 0) AS nonces
      FROM webhook_count WHERE sender_id = w.id AND keyid_id = k.id) n) x
    WHERE x.id IS NOT NULL GROUP BY x.id ORDER BY x.id
  LOOP
    IF v.near THEN
      PERFORM pg_advisory_xact_lock(v_class, v.id);
      v_exact := v_exact || v.id;
    ELSE
      PERFORM pg_advisory_xact_lock_shared(v_class, v.id);
    END IF;
  END LOOP;
  RETURN v_exact;
END $$;
CREATE FUNCTION webhook_lock(s webhook_step, p_calls webhook_call[], p_fresh webhook_fresh[], p_guards integer[])
RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_alone integer[];
BEGIN
  IF cardinality(p_calls) > 0 THEN
    v_alone := ARRAY(
      SELECT webhook_bucket(w.id, x.resource, 128) FROM unnest(p_calls) c JOIN webhook_sender w ON w.url = c.sender
      CROSS JOIN LATERAL (
        VALUES ('k' || c.key), ('n' || c.nonce), ('i' || c.notification_id)
        UNION ALL SELECT 'i' || m FROM unnest(c.media_buys) m) x (resource)
      WHERE x.resource IS NOT NULL AND c.op = 'accept');
  END IF;
  PERFORM webhook_lock_buckets(webhook_class('bucket'), v_alone, ARRAY(
    SELECT webhook_bucket(f.sender_id, x.resource, 128) FROM unnest(p_fresh) f CROSS JOIN LATERAL (
      VALUES ('k' || f.key), ('n' || f.nonce), ('i' || f.notification_id)) x (resource)
    WHERE x.resource IS NOT NULL));
  s.tasks := ARRAY(SELECT webhook_bucket(f.sender_id, f.task_id, 65536)
    FROM unnest(p_fresh) f WHERE f.task_id IS NOT NULL) || p_guards;
  IF cardinality(p_calls) > 0 THEN
    -- A changed payload may name another task than the record that it meets. OFFSET 0: one look by the whole key for
    -- each call; planners that take the table for small would read all of the sender's records.
    s.tasks := s.tasks || ARRAY(
      SELECT x.guard FROM unnest(p_calls) c JOIN webhook_sender w ON w.url = c.sender
      LEFT JOIN LATERAL (SELECT webhook_guard(w.id, key, task_id) AS guard FROM webhook_record
        WHERE sender_id = w.id AND key = c.key OFFSET 0) r ON true
      CROSS JOIN LATERAL (VALUES (webhook_bucket(w.id, c.task_id, 65536)), (r.guard)) x (guard)
      WHERE x.guard IS NOT NULL AND c.op <> 'peek');
  END IF;
  PERFORM webhook_lock_buckets(webhook_class('task'), s.tasks, NULL);
  RETURN s;
END $$;
CREATE FUNCTION webhook_fit(p_calls webhook_call[]) RETURNS webhook_call[] LANGUAGE plpgsql AS $$
DECLARE
  c webhook_call;
  v_fit webhook_call[] := '{}';
BEGIN
  IF NOT EXISTS (SELECT FROM unnest(p_calls) x WHERE length(x.nonce) > 512 OR length(x.keyid) > 512) THEN
    RETURN p_calls;
  END IF;
  FOREACH c IN ARRAY p_calls LOOP
    IF length(c.nonce) > 512 THEN c.nonce := chr(2) || encode(sha256(convert_to(c.nonce, 'UTF8')), 'hex'); END IF;
    IF length(c.keyid) > 512 THEN c.keyid := chr(2) || encode(sha256(convert_to(c.keyid, 'UTF8')), 'hex'); END IF;
    v_fit := v_fit || c;
  END LOOP;
  RETURN v_fit;
END $$;


CREATE FUNCTION webhook_lock_lone(s webhook_step, c webhook_call) RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_class integer;
  v_sender integer;
  v_keyid integer;
  v_entries bigint;
  v_bytes bigint;
  v_nonces bigint;
  k integer;
  n integer;
  i integer;
BEGIN
  IF c.media_buys IS NOT NULL OR c.op = 'peek' THEN RETURN s; END IF;
  SELECT id INTO v_sender FROM webhook_sender WHERE url = c.sender;
  IF v_sender IS NULL THEN RETURN s; END IF;
  IF c.keyid IS NOT NULL THEN
    SELECT id INTO v_keyid FROM webhook_keyid WHERE sender_id = v_sender AND keyid = c.keyid;
    IF v_keyid IS NULL THEN RETURN s; END IF;
  END IF;
  IF c.op = 'accept' THEN
    SELECT sum(entries), sum(pending_bytes) INTO v_entries, v_bytes
      FROM webhook_count WHERE sender_id = v_sender;
    SELECT sum(nonces) INTO v_nonces FROM webhook_count WHERE sender_id = v_sender AND keyid_id = v_keyid;
    IF coalesce(v_entries, 0) + 10000 >= c.max_records OR coalesce(v_bytes, 0) + 67108864 >= c.max_bytes OR coalesce(v_nonces, 0) + 10000 >= c.max_key_nonces THEN
      RETURN s;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(webhook_class('sender'), v_sender);
  END IF;
  s.exact := '{}';
  v_class := webhook_class('bucket');
  k := CASE WHEN c.op = 'accept' THEN webhook_bucket(v_sender, 'k' || c.key, 128) END;
  n := webhook_bucket(v_sender, 'n' || c.nonce, 128);
  i := webhook_bucket(v_sender, 'i' || c.notification_id, 128);
  IF coalesce(k, n, i) IS NOT NULL THEN PERFORM pg_advisory_xact_lock(v_class, least(k, n, i)); END IF;
  IF k + n + i IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock(v_class, k + n + i - least(k, n, i) - greatest(k, n, i));
  END IF;
  IF greatest(k, n, i) > least(k, n, i) THEN PERFORM pg_advisory_xact_lock(v_class, greatest(k, n, i)); END IF;
  -- A changed payload may name another task than the record that it meets.
  SELECT webhook_guard(v_sender, key, task_id) INTO n FROM webhook_record WHERE sender_id = v_sender AND key = c.key;
  v_class := webhook_class('task');
  k := webhook_bucket(v_sender, c.task_id, 65536);
  s.tasks := array_remove(ARRAY[k, n], NULL);
  IF coalesce(k, n) IS NOT NULL THEN PERFORM pg_advisory_xact_lock(v_class, least(k, n)); END IF;
  IF k <> n THEN PERFORM pg_advisory_xact_lock(v_class, greatest(k, n)); END IF;
  RETURN s;
END $$;


CREATE FUNCTION webhook_visit(s webhook_step, c webhook_call, p_sender boolean)
RETURNS webhook_step LANGUAGE plpgsql AS $$
BEGIN
  IF p_sender THEN
    SELECT id INTO s.sender_id FROM webhook_sender WHERE url = c.sender;
    s.entries := 0; s.pending_bytes := 0;
    s.entries_before := 0; s.bytes_before := 0;
    s.sender_known := false;
  END IF;
  s.keyid_id := NULL;
  IF c.keyid IS NOT NULL THEN
    SELECT id INTO s.keyid_id FROM webhook_keyid WHERE sender_id = s.sender_id AND keyid = c.keyid;
  END IF;
  s.nonces := 0;
  s.nonces_before := 0;
  s.keyid_known := s.keyid_id IS NULL;
  IF s.all_known IS NULL THEN
    s.all_nonces := 0;
    s.all_before := 0;
    s.all_known := false;
  END IF;
  RETURN s;
END $$;
CREATE FUNCTION webhook_count_used(s webhook_step, c webhook_call) RETURNS webhook_step LANGUAGE plpgsql AS $$
BEGIN
  IF s.sender_known AND s.keyid_known THEN RETURN s; END IF;
  IF NOT s.sender_known THEN
    SELECT coalesce(sum(entries), 0), coalesce(sum(pending_bytes), 0) INTO s.entries_before, s.bytes_before
      FROM (SELECT entries, pending_bytes FROM webhook_count WHERE sender_id = s.sender_id
        UNION ALL SELECT entries, pending_bytes FROM unnest(s.changes) WHERE sender_id = s.sender_id) x;
    s.entries := s.entries + s.entries_before;
    s.pending_bytes := s.pending_bytes + s.bytes_before;
    s.sender_known := true;
  END IF;
  IF NOT s.keyid_known THEN
    SELECT coalesce(sum(nonces), 0) INTO s.nonces_before
      FROM (SELECT nonces FROM webhook_count WHERE sender_id = s.sender_id AND keyid_id = s.keyid_id
        UNION ALL SELECT nonces FROM unnest(s.changes) WHERE sender_id = s.sender_id AND keyid_id = s.keyid_id) x;
    s.nonces := s.nonces + s.nonces_before;
    s.keyid_known := true;
  END IF;
  IF c.nonce IS NOT NULL AND NOT s.all_known THEN
    SELECT coalesce(sum(nonces), 0) INTO s.all_before
      FROM (SELECT nonces FROM webhook_count WHERE sender_id = 0 AND keyid_id = 0
        UNION ALL SELECT nonces FROM unnest(s.changes) WHERE sender_id = 0) x;
    s.all_nonces := s.all_nonces + s.all_before;
    s.all_known := true;
  END IF;
  IF NOT s.sender_id = ANY (s.exact) AND (s.entries + 10000 >= c.max_records OR s.pending_bytes + 67108864 >= c.max_bytes OR s.nonces + 10000 >= c.max_key_nonces) THEN
    RAISE EXCEPTION 'a cap came near' USING ERRCODE = '40001';
  END IF;
  RETURN s;
END $$;
CREATE FUNCTION webhook_leave(s webhook_step, p_sender boolean) RETURNS webhook_step LANGUAGE plpgsql AS $$
BEGIN
  IF s.sender_id IS NULL THEN RETURN s; END IF;
  IF s.sender_known AND s.turn >= 0 THEN s := webhook_purge(s, s.turn, s.most); END IF;
  s := webhook_add(s, s.keyid_id, 0, 0, s.nonces - s.nonces_before);
  IF p_sender THEN s := webhook_add(s, 0, s.entries - s.entries_before, s.pending_bytes - s.bytes_before, 0); END IF;
  RETURN s;
END $$;


CREATE FUNCTION webhook_each(s webhook_step, p_calls webhook_call[], p_bodies bytea)
RETURNS TABLE (answer text, body bytea) LANGUAGE plpgsql AS $$
DECLARE
  v_barrier boolean := cardinality(s.changes) > 0;
  c webhook_call;
  p webhook_call;
BEGIN
  FOREACH c IN ARRAY p_calls LOOP
    IF p.sender IS DISTINCT FROM c.sender OR p.keyid IS DISTINCT FROM c.keyid THEN
      s := webhook_leave(s, p.sender IS DISTINCT FROM c.sender);
      s := webhook_visit(s, c, p.sender IS DISTINCT FROM c.sender);
      p := c;
    END IF;
    s.kind := NULL; s.more := NULL; s.body := NULL; s.pressure := NULL;
    IF c.op = 'accept' THEN
      s := webhook_count_used(s, c);
      s := webhook_accept(s, c, p_bodies);
    ELSIF c.op IN ('complete', 'finish') THEN s := webhook_complete(s, c);
    ELSIF c.op = 'fail' THEN s := webhook_fail(s, c);
    ELSIF c.op = 'renew' THEN s := webhook_renew(s, c);
    ELSIF c.op = 'peek' THEN s := webhook_peek(s, c);
    ELSIF c.op = 'redrive' THEN s := webhook_redrive(s, c);
    ELSE s := webhook_discard(s, c);
    END IF;
    v_barrier := v_barrier OR NOT (c.op = 'peek' AND s.kind IN ('absent', 'free', 'busy'));
    answer := (coalesce(s.more, '{}') || jsonb_build_object('kind', s.kind, 'pressure', s.pressure))::text;
    body := s.body;
    RETURN NEXT;
  END LOOP;
  s := webhook_leave(s, true);
  IF v_barrier THEN
    s.changes := s.changes || ROW(0, 0, 0, 0, s.all_nonces - s.all_before)::webhook_change;
    PERFORM webhook_flush(s);
  END IF;
END $$;
CREATE FUNCTION webhook_run(p_calls jsonb, p_bodies bytea, p_offset bigint, p_turn integer, p_most integer,
  p_lock_ms integer, p_sync text) RETURNS TABLE (answer text, body bytea)
LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_calls webhook_call[] := ARRAY(SELECT x FROM jsonb_populate_recordset(NULL::webhook_call, p_calls) x);
  s webhook_step;
BEGIN
  PERFORM webhook_enter(p_lock_ms, p_sync);
  s.changes := '{}';
  v_calls := webhook_fit(v_calls);
  IF cardinality(v_calls) = 1 THEN s := webhook_lock_lone(s, v_calls[1]); END IF;
  IF s.exact IS NULL THEN
    PERFORM webhook_register(v_calls);
    s.exact := webhook_lock_senders(v_calls, '{}');
    s := webhook_lock(s, v_calls, '{}', '{}');
  END IF;
  s.at := webhook_now(p_offset);
  s.turn := p_turn;
  s.most := p_most;
  RETURN QUERY SELECT * FROM webhook_each(s, v_calls, p_bodies);
END $$;
CREATE FUNCTION webhook_run_sets(p_calls jsonb, p_bodies bytea, p_offset bigint, p_turn integer, p_most integer,
  p_lock_ms integer, p_sync text, p_terms bigint[], p_senders text[], p_keyids text[], p_groups integer[],
  p_keys text[], p_callers text[], p_nonces text[], p_nonce_ms bigint[], p_body_at integer[], p_body_bytes integer[],
  p_raw_hashes text[], p_canonical_hashes text[], p_tasks text[], p_instants text[], p_instant_ms bigint[],
  p_terminal boolean[], p_notifications text[], p_end_senders text[], p_end_keys text[], p_end_owners text[],
  p_end_retentions bigint[]) RETURNS TABLE (answer text, body bytea)
LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_calls webhook_call[] := '{}';
  v_sender_ids integer[];
  v_keyid_ids integer[];
  v_fresh webhook_fresh[];
  v_end_ids integer[];
  v_guards integer[] := '{}';
  s webhook_step;
BEGIN
  PERFORM webhook_enter(p_lock_ms, p_sync);
  s.changes := '{}';
  IF p_calls IS NOT NULL THEN
    v_calls := webhook_fit(ARRAY(SELECT x FROM jsonb_populate_recordset(NULL::webhook_call, p_calls) x));
  END IF;
  LOOP
    SELECT array_agg(CASE WHEN g.keyid IS NULL OR k.id IS NOT NULL THEN w.id END ORDER BY g.place),
      array_agg(k.id ORDER BY g.place) INTO v_sender_ids, v_keyid_ids
      FROM unnest(p_senders, p_keyids) WITH ORDINALITY g (url, keyid, place)
      LEFT JOIN webhook_sender w ON w.url = g.url COLLATE "C"
      LEFT JOIN webhook_keyid k ON k.sender_id = w.id AND k.keyid = g.keyid COLLATE "C";
    EXIT WHEN array_position(v_sender_ids, NULL) IS NULL;
    -- Those of the others with them: new rows in two turns could be waited for in a circle.
    PERFORM webhook_register_names(p_senders || ARRAY(SELECT sender FROM unnest(v_calls) WHERE op = 'accept'),
      p_keyids || ARRAY(SELECT keyid FROM unnest(v_calls) WHERE op = 'accept'));
  END LOOP;
  IF p_calls IS NOT NULL THEN PERFORM webhook_register(v_calls); END IF;
  s.exact := webhook_lock_senders(v_calls, v_sender_ids);
  FOR v_of IN 1..coalesce(cardinality(v_sender_ids), 0) LOOP
    IF NOT webhook_has_room(v_sender_ids[v_of], v_keyid_ids[v_of], p_terms) THEN v_sender_ids[v_of] := NULL; END IF;
  END LOOP;
  v_fresh := ARRAY(
    SELECT ROW(f.place, v_sender_ids[f.of], v_keyid_ids[f.of], f.key, f.caller, f.nonce, f.nonce_ms, f.body_at,
      f.body_bytes, decode(f.raw_hash, 'hex'), decode(f.canonical_hash, 'hex'), f.task_id, f.instant, f.instant_ms,
      f.terminal, f.notification_id, NULL, NULL)::webhook_fresh
    FROM unnest(p_groups, p_keys, p_callers, p_nonces, p_nonce_ms, p_body_at, p_body_bytes, p_raw_hashes,
      p_canonical_hashes, p_tasks, p_instants, p_instant_ms, p_terminal, p_notifications)
      WITH ORDINALITY f (of, key, caller, nonce, nonce_ms, body_at, body_bytes, raw_hash, canonical_hash, task_id,
      instant, instant_ms, terminal, notification_id, place)
    WHERE v_sender_ids[f.of] IS NOT NULL);
  IF p_end_keys IS NOT NULL THEN
    SELECT array_agg(w.id ORDER BY e.place), array_remove(array_agg(r.guard), NULL) INTO v_end_ids, v_guards
      FROM unnest(p_end_senders, p_end_keys) WITH ORDINALITY e (url, key, place)
      LEFT JOIN webhook_sender w ON w.url = e.url COLLATE "C"
      LEFT JOIN LATERAL (SELECT webhook_guard(w.id, key, task_id) AS guard FROM webhook_record
        WHERE sender_id = w.id AND key = e.key COLLATE "C" OFFSET 0) r ON true;
  END IF;
  s := webhook_lock(s, v_calls, v_fresh, v_guards);
  s.at := webhook_now(p_offset);
  s.turn := p_turn;
  s.most := p_most;
  -- First of all: what they free, a fresh event of the same task may take.
  IF p_end_keys IS NOT NULL THEN
    s := webhook_end_all(s, v_end_ids, p_end_keys, p_end_owners, p_end_retentions);
  END IF;
  IF cardinality(v_fresh) > 0 THEN v_fresh := webhook_admissible(s, p_terms[1] = 1, v_fresh); END IF;
  IF cardinality(v_fresh) > 0 THEN
    s := webhook_admit(s, p_terms, v_fresh, p_bodies);
    IF p_turn >= 0 THEN
      FOR v_of IN 1..cardinality(v_sender_ids) LOOP
        CONTINUE WHEN v_sender_ids[v_of] IS NULL;
        s.sender_id := v_sender_ids[v_of]; s.keyid_id := v_keyid_ids[v_of];
        s.entries := 0; s.pending_bytes := 0; s.nonces := 0; s.all_nonces := 0;
        s := webhook_purge(s, p_turn, p_most);
        s := webhook_add(s, coalesce(s.keyid_id, 0), s.entries, s.pending_bytes, s.nonces);
        s.sender_id := 0;
        s := webhook_add(s, 0, 0, 0, s.all_nonces);
      END LOOP;
      s.sender_id := NULL; s.keyid_id := NULL;
    END IF;
  END IF;
  answer := concat((SELECT string_agg(chr(48 + f.after_terminal::integer + 2 * coalesce(f.instant_ms > s.at + 300000, false)::integer)
    || f.place, ' ') FROM unnest(v_fresh) f), ';', array_to_string(s.ended, ' '));
  RETURN NEXT;
  IF cardinality(v_calls) > 0 THEN
    RETURN QUERY SELECT * FROM webhook_each(s, v_calls, p_bodies);
  ELSIF cardinality(s.changes) > 0 THEN
    PERFORM webhook_flush(s);
  END IF;
END $$;


CREATE FUNCTION webhook_started() RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT (extract(epoch FROM transaction_timestamp()) * 1000000)::bigint
$$;
CREATE FUNCTION webhook_holds(p_call jsonb, p_offset bigint) RETURNS text
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
DECLARE
  c webhook_call := jsonb_populate_record(NULL::webhook_call, p_call);
BEGIN
  PERFORM FROM webhook_record r JOIN webhook_sender w ON w.id = r.sender_id
    WHERE w.url = c.sender AND r.key = c.key AND r.owner = c.caller AND r.state = 'leased'
      AND r.lease_until > webhook_now(p_offset);
  RETURN CASE WHEN FOUND THEN webhook_started() END;
END $$;
CREATE FUNCTION webhook_finish(p_call jsonb, p_offset bigint, p_started bigint, p_lock_ms integer, p_sync text)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_answer text;
BEGIN
  IF webhook_started() <> p_started THEN
    RAISE EXCEPTION 'the transaction was ended by the function' USING ERRCODE = 'PW004';
  END IF;
  SELECT r.answer INTO v_answer FROM webhook_run(jsonb_build_array(p_call), '', p_offset, 0, 16, p_lock_ms, p_sync) r;
  IF v_answer::jsonb ->> 'kind' <> 'done' THEN
    RAISE EXCEPTION 'the lease ran out or went to another owner' USING ERRCODE = 'PW003';
  END IF;
END $$;


CREATE FUNCTION webhook_lease(p_call jsonb, p_offset bigint, p_look integer, p_most integer, p_lock_ms integer,
  p_sync text) RETURNS TABLE (answer text, body bytea)
LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  c webhook_call := jsonb_populate_record(NULL::webhook_call, p_call);
  v_heads webhook_head[];
  v_class integer := webhook_class('task');
  v_looked integer := 0;
  v_freed boolean;
  v_moved integer := 0;
  v_given integer := 0;
  v_ended integer := 0;
  r webhook_head;
  s webhook_step;
BEGIN
  PERFORM webhook_enter(p_lock_ms, p_sync);
  s.at := webhook_now(p_offset);
  s.changes := '{}';
  LOOP
    v_freed := false;
    v_heads := ARRAY(SELECT h FROM (SELECT * FROM webhook_head
      WHERE acked AND state IN ('queued', 'leased') AND greatest(CASE state WHEN 'queued' THEN not_before ELSE lease_until END, parked_until) <= s.at ORDER BY greatest(CASE state WHEN 'queued' THEN not_before ELSE lease_until END, parked_until), seq LIMIT p_look - v_looked FOR UPDATE SKIP LOCKED) h);
    FOREACH r IN ARRAY v_heads LOOP
      EXIT WHEN v_given >= p_most;
      v_looked := v_looked + 1;
      -- Somebody is busy with the task: the record stays due. Waiting, with rows locked, might be waiting for each other.
      s.tasks := ARRAY(SELECT webhook_bucket(r.sender_id, r.task_id, 65536) WHERE r.task_id IS NOT NULL);
      CONTINUE WHEN r.task_id IS NOT NULL AND NOT pg_try_advisory_xact_lock(v_class, s.tasks[1]);
      s.sender_id := r.sender_id;
      s.entries := 0; s.pending_bytes := 0;
      s := webhook_claim(s, c, r);
      v_moved := v_moved + 1;
      IF s.kind = 'later' THEN
        UPDATE webhook_record SET parked_until = s.at + 200 WHERE sender_id = r.sender_id AND key = r.key;
        CONTINUE;
      END IF;
      IF s.kind IN ('died', 'stale') THEN v_ended := v_ended + 1; END IF;
      IF s.kind = 'busy' THEN
        UPDATE webhook_record SET parked_until = s.parked_until WHERE sender_id = r.sender_id AND key = r.key;
      ELSIF s.kind <> 'stale' THEN
        SELECT jsonb_build_object('sender', w.url, 'key', r.key, 'kind',
          CASE s.kind WHEN 'won' THEN 'event' ELSE 'died' END) || coalesce(s.more, '{}')
          INTO answer FROM webhook_sender w WHERE w.id = r.sender_id;
        body := NULL;
        IF s.kind = 'won' THEN
          v_given := v_given + 1;
          SELECT b.body INTO body FROM webhook_record b WHERE b.sender_id = r.sender_id AND b.key = r.key;
        END IF;
        RETURN NEXT;
      END IF;
      s.more := NULL;
      s := webhook_add(s, 0, s.entries, s.pending_bytes, 0);
      -- One that ended has freed its task: what waited for it may be due before the rest.
      v_freed := r.task_id IS NOT NULL AND s.kind IN ('died', 'stale');
      EXIT WHEN v_freed;
    END LOOP;
    EXIT WHEN NOT v_freed;
  END LOOP;
  PERFORM webhook_flush(s);
  body := NULL;
  SELECT jsonb_build_object('kind', 'end', 'found', v_looked, 'moved', v_moved, 'ended', v_ended, 'nextDue',
    (SELECT greatest(greatest(CASE state WHEN 'queued' THEN not_before ELSE lease_until END, parked_until) - s.at, 0) FROM webhook_record WHERE acked AND state IN ('queued', 'leased') ORDER BY greatest(CASE state WHEN 'queued' THEN not_before ELSE lease_until END, parked_until) LIMIT 1))
    INTO answer;
  RETURN NEXT;
END $$;
CREATE FUNCTION webhook_seen(p_url text, r webhook_head) RETURNS jsonb LANGUAGE sql AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object('sender', p_url, 'key', r.key, 'state', r.state, 'acked', r.acked,
    'attempts', r.attempts, 'crashes', r.crashes, 'insertedAt', r.inserted_at, 'notBefore', r.not_before,
    'leaseUntil', r.lease_until, 'taskId', r.task_id, 'lastError', r.last_error,
    'bodyBytes', CASE WHEN r.state IN ('applied', 'stale') THEN 0 ELSE r.body_bytes END, 'seq', r.seq))
$$;
CREATE FUNCTION webhook_list(p_query jsonb, p_offset bigint) RETURNS TABLE (answer text, body bytea)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  RETURN QUERY SELECT webhook_seen(w.url, r)::text, NULL::bytea
    FROM webhook_head r JOIN webhook_sender w ON w.id = r.sender_id
    WHERE r.state IN ('queued', 'leased', 'dead') AND r.state = p_query ->> 'state'
      AND r.seq > (p_query ->> 'after')::bigint
      AND (p_query ->> 'sender' IS NULL OR w.url = p_query ->> 'sender')
      AND (r.expires_at IS NULL OR r.expires_at > webhook_now(p_offset))
    ORDER BY r.seq LIMIT (p_query ->> 'limit')::integer;
END $$;
CREATE FUNCTION webhook_inspect(p_call jsonb, p_offset bigint) RETURNS TABLE (answer text, body bytea)
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  RETURN QUERY SELECT webhook_seen(w.url, r)::text, b.body
    FROM webhook_sender w JOIN webhook_head r ON r.sender_id = w.id
    JOIN webhook_record b ON b.sender_id = r.sender_id AND b.key = r.key
    WHERE w.url = p_call ->> 'sender' AND r.key = p_call ->> 'key'
      AND (r.expires_at IS NULL OR r.expires_at > webhook_now(p_offset));
END $$;
