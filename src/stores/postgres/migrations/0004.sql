-- Rows that are compared and set (`Backend`). What they mean, no statement here knows.

-- No plan may depend on the server's statistics: a table that was empty when it was analyzed counts as empty until it is
-- analyzed again, whatever has come into it, and a join with it would begin with all of its rows.
--   LATERAL (... OFFSET 0) and a subquery in SELECT are run once for each name, in no other order
--   the table of UPDATE or DELETE cannot be LATERAL: it is joined by ctid, which stays while the row is locked
--   enable_bitmapscan = off: an index in whose order the first few are asked for is not read to its end, and sorted

-- Which store this is: one row. told: a process has said that it was made.
CREATE TABLE webhook_identity (id text NOT NULL, told boolean NOT NULL);
INSERT INTO webhook_identity
  SELECT md5(random()::text || random()::text || clock_timestamp()::text || pg_backend_pid()::text)::uuid::text, false;
-- Whose row: a sender (key ''), or one key id of it ('=' and the key id). Few, and never deleted. 0: nonces of all.
CREATE TABLE webhook_scope (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  sender text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  UNIQUE (sender, key)
);
-- Each backend adds to a stripe of its own number, so that two of them seldom wait for one row. A count is their sum.
CREATE TABLE webhook_tally (
  scope_id integer NOT NULL,
  stripe integer NOT NULL,
  rows bigint NOT NULL,
  bytes bigint NOT NULL,
  PRIMARY KEY (scope_id, stripe)
) WITH (fillfactor = 25);
-- kind: r record, t task, n nonce, i notification, p process. seq is the order of insertion; null in expires_at and due_at:
-- never. A suspect is due at suspect_at, by its crashes, and never at due_at.
CREATE TABLE webhook_row (
  version bigint NOT NULL,
  seq bigint GENERATED ALWAYS AS IDENTITY,
  expires_at bigint,
  due_at bigint,
  suspect_at bigint,
  scope_id integer NOT NULL,
  bytes integer NOT NULL,
  crashes integer,
  kind text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  list text COLLATE "C",
  waits_for text COLLATE "C",
  link text COLLATE "C",
  data text COLLATE "C" NOT NULL,
  body bytea,
  PRIMARY KEY (scope_id, kind, id)
);
-- A body is neither compressed (its life is short) nor moved where the row is updated.
ALTER TABLE webhook_row ALTER body SET STORAGE EXTERNAL;
CREATE INDEX webhook_row_expiry ON webhook_row (scope_id, expires_at) WHERE expires_at IS NOT NULL;
-- By the negative, which no other index has: the primary key, sorted by scope_id too, cannot be read in its place.
CREATE INDEX webhook_row_due ON webhook_row ((-scope_id), due_at, seq)
  WHERE due_at IS NOT NULL AND scope_id IS NOT NULL;
-- Of all senders, also by the negative. A statement that names no sender cannot use the one above: it does not follow from it
-- that scope_id is not null.
CREATE INDEX webhook_row_when ON webhook_row ((-due_at)) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_row_suspect ON webhook_row (crashes, seq) WHERE suspect_at IS NOT NULL;
CREATE INDEX webhook_row_list ON webhook_row (seq) WHERE list IS NOT NULL;
CREATE INDEX webhook_row_waits ON webhook_row (scope_id, waits_for, seq)
  WHERE waits_for IS NOT NULL AND scope_id IS NOT NULL;
-- Instants of registrations, of all senders: names of tasks begin with no such character.
CREATE INDEX webhook_row_turn ON webhook_row (waits_for) WHERE waits_for < E'\x02';

CREATE FUNCTION webhook_clock(p_offset bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + p_offset
$$;

-- Of every transaction that writes: isolation, the longest wait for a lock, and what its commit waits for at least.
CREATE FUNCTION webhook_begin(p_lock_ms integer, p_sync text) RETURNS void LANGUAGE plpgsql AS $$
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
  -- That a wait for the standby was cancelled comes as a warning.
  IF current_setting('client_min_messages') = 'error' THEN
    PERFORM set_config('client_min_messages', 'warning', true);
  END IF;
END $$;

-- Ids of scopes, made where they are new.
CREATE FUNCTION webhook_scopes(p_senders text[], p_keys text[]) RETURNS TABLE (id integer)
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  INSERT INTO webhook_scope (sender, key) SELECT DISTINCT e.sender COLLATE "C", e.key COLLATE "C"
    FROM unnest(p_senders, p_keys) e (sender, key) ORDER BY 1, 2 ON CONFLICT DO NOTHING;
  RETURN QUERY SELECT s.id FROM unnest(p_senders, p_keys) WITH ORDINALITY e (sender, key, place)
    JOIN webhook_scope s ON s.sender = e.sender COLLATE "C" AND s.key = e.key COLLATE "C" ORDER BY e.place;
END $$;

-- Rows by name, with what comes with them: with a record its task; with a task the record that holds it and the two
-- oldest of those that wait for it.
CREATE FUNCTION webhook_look(p_scopes integer[], p_kinds text[], p_ids text[])
RETURNS TABLE (scope_id integer, kind text, id text, version bigint, data text, seq bigint) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY
  WITH asked AS (
    SELECT r.scope_id, r.kind, r.id, r.link FROM unnest(p_scopes, p_kinds, p_ids) e (scope_id, kind, id)
      CROSS JOIN LATERAL (SELECT x.scope_id, x.kind, x.id, x.link FROM webhook_row x WHERE x.scope_id = e.scope_id
        AND x.kind = e.kind COLLATE "C" AND x.id = e.id COLLATE "C" OFFSET 0) r),
  task AS (
    SELECT a.scope_id, a.id FROM asked a WHERE a.kind = 't'
    UNION SELECT a.scope_id, a.link FROM asked a WHERE a.kind = 'r' AND a.link IS NOT NULL),
  named AS (
    SELECT a.scope_id, a.kind, a.id FROM asked a
    UNION SELECT t.scope_id, 't', t.id FROM task t
    UNION SELECT h.scope_id, 'r', h.link FROM task t CROSS JOIN LATERAL (
      SELECT x.scope_id, x.link FROM webhook_row x WHERE x.scope_id = t.scope_id AND x.kind = 't' AND x.id = t.id
      OFFSET 0) h WHERE h.link IS NOT NULL
    UNION SELECT w.scope_id, 'r', w.id FROM task t CROSS JOIN LATERAL (
      SELECT x.scope_id, x.id FROM webhook_row x WHERE x.scope_id = t.scope_id AND x.waits_for = t.id
      ORDER BY x.seq LIMIT 2) w)
  SELECT r.scope_id, r.kind, r.id, r.version, r.data, r.seq FROM named n CROSS JOIN LATERAL (
    SELECT x.* FROM webhook_row x WHERE x.scope_id = n.scope_id AND x.kind = n.kind COLLATE "C"
      AND x.id = n.id COLLATE "C" OFFSET 0) r ORDER BY r.seq;
END $$;

-- [[scope, rows, bytes, nonces of all key ids where it is a sender's], …], and nonces of all as that of scope 0.
CREATE FUNCTION webhook_counts(p_scopes integer[]) RETURNS json LANGUAGE sql STABLE AS $$
  SELECT json_agg(json_build_array(s.id, coalesce(c.rows, 0), coalesce(c.bytes, 0), (
    SELECT sum((SELECT sum(t.rows::float8) FROM webhook_tally t WHERE t.scope_id = k.id)) FROM webhook_scope k
      WHERE k.sender = (SELECT o.sender FROM webhook_scope o WHERE o.id = s.id AND o.key = '') AND k.key <> '')))
  FROM unnest(p_scopes || 0) s (id) CROSS JOIN LATERAL (
    -- Sums of bigint are numeric, which costs more than all the rest.
    SELECT sum(t.rows::float8) AS rows, sum(t.bytes::float8) AS bytes FROM webhook_tally t WHERE t.scope_id = s.id) c
$$;

-- One commit for all units that hold. Rows are sorted, tasks first, and so are the locks that they take.
--   p_at       the plans' clock; over 1 s old and more ms than there are rows, or ahead of the store's: nothing is done, and the
--              answer says "old"
--   p_reads    some rows have to be absent and are not written; p_new, p_old: how many are inserted, updated
--   p_version  what a row has to have; null: it has to be absent
--   p_next     its new version; null: it is only compared
--   p_suspect, p_crashes  of suspects; none is inserted
--   p_at_data, p_at_body  where they begin in p_bytes; a body at -1: dropped; null: stays
--   p_tally_*  what a unit adds to the counts; unit -1: in any case
--   p_counts   scopes whose counts are told
--   p_names    synchronous_standby_names as it was; where it, p_sync or fsync is otherwise, that is told
--   p_started  in a transaction of the owner's: when it began, for a function may have ended it
-- Answers a number, the clock, where there is nothing else to say; else JSON.
CREATE FUNCTION webhook_commit(p_at bigint, p_offset bigint, p_lock_ms integer, p_sync text,
  p_reads boolean, p_new integer, p_old integer,
  p_unit integer[], p_scope integer[], p_kind text[], p_id text[], p_version bigint[], p_next bigint[],
  p_expires bigint[], p_due bigint[], p_suspect bigint[], p_crashes integer[], p_list text[], p_waits text[], p_link text[], p_of integer[],
  p_at_data integer[], p_of_data integer[], p_at_body integer[], p_of_body integer[], p_bytes bytea,
  p_tally_unit integer[], p_tally_scope integer[], p_tally_rows bigint[], p_tally_bytes bigint[],
  p_counts integer[], p_names text, p_started text)
RETURNS text LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_now bigint := webhook_clock(p_offset);
  v_refused integer[] := '{}';
  v_new integer;
  v_lost integer[];
  v_kept json;
BEGIN
  IF p_started <> transaction_timestamp()::text THEN
    RAISE EXCEPTION 'the transaction was ended by the function' USING ERRCODE = 'PW004';
  END IF;
  IF (p_at < v_now - 1000 AND p_at < v_now - coalesce(cardinality(p_unit), 0)) OR p_at > v_now + 5 THEN RETURN json_build_object('now', v_now, 'old', true); END IF;
  IF current_setting('transaction_isolation') <> 'read committed' OR current_setting('synchronous_commit') <> p_sync
    OR current_setting('client_min_messages') = 'error'
    OR set_config('lock_timeout', p_lock_ms::text, true) IS NULL THEN
    PERFORM webhook_begin(p_lock_ms, p_sync);
  END IF;
  IF p_names <> current_setting('synchronous_standby_names') OR p_sync <> current_setting('synchronous_commit')
    OR current_setting('fsync') <> 'on' THEN
    v_kept := json_build_array(current_setting('synchronous_standby_names'), current_setting('synchronous_commit'),
      current_setting('fsync'));
  END IF;
  -- Locked in their order, and compared as they are then.
  IF p_version IS NOT NULL THEN
    v_refused := ARRAY(SELECT DISTINCT e.unit
      FROM unnest(p_unit, p_scope, p_kind, p_id, p_version) e (unit, scope, kind, id, version)
      WHERE e.version IS NOT NULL AND e.version IS DISTINCT FROM (SELECT r.version FROM webhook_row r
        WHERE r.scope_id = e.scope AND r.kind = e.kind COLLATE "C" AND r.id = e.id COLLATE "C" FOR UPDATE));
  END IF;
  IF p_reads THEN
    v_refused := v_refused || ARRAY(SELECT DISTINCT e.unit
      FROM unnest(p_unit, p_scope, p_kind, p_id, p_version, p_next) e (unit, scope, kind, id, version, next)
      WHERE e.version IS NULL AND e.next IS NULL AND (SELECT r.version FROM webhook_row r
        WHERE r.scope_id = e.scope AND r.kind = e.kind COLLATE "C" AND r.id = e.id COLLATE "C") IS NOT NULL);
  END IF;
  IF p_new > 0 THEN
    INSERT INTO webhook_row (version, expires_at, due_at, scope_id, bytes, kind, id, list, waits_for, link, data, body)
      SELECT e.next, e.expires, e.due, e.scope, e.of, e.kind, e.id, e.list, e.waits, e.link,
        convert_from(substring(p_bytes FROM e.at_data + 1 FOR e.of_data), 'UTF8'),
        CASE WHEN e.at_body >= 0 THEN substring(p_bytes FROM e.at_body + 1 FOR e.of_body) END
      FROM unnest(p_unit, p_scope, p_kind, p_id, p_version, p_next, p_expires, p_due, p_list, p_waits, p_link, p_of,
        p_at_data, p_of_data, p_at_body, p_of_body)
        e (unit, scope, kind, id, version, next, expires, due, list, waits, link, of, at_data, of_data, at_body, of_body)
      WHERE e.version IS NULL AND e.next IS NOT NULL AND e.unit <> ALL (v_refused)
      ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS v_new = ROW_COUNT;
    IF v_new < p_new THEN
      -- Where another was faster, what the unit has inserted beside it goes.
      v_lost := ARRAY(SELECT DISTINCT e.unit
        FROM unnest(p_unit, p_scope, p_kind, p_id, p_version, p_next) e (unit, scope, kind, id, version, next)
        WHERE e.version IS NULL AND e.next IS NOT NULL AND e.unit <> ALL (v_refused)
          AND e.next IS DISTINCT FROM (SELECT r.version FROM webhook_row r
            WHERE r.scope_id = e.scope AND r.kind = e.kind COLLATE "C" AND r.id = e.id COLLATE "C"));
      DELETE FROM webhook_row WHERE ctid = ANY (ARRAY(
        SELECT (SELECT r.ctid FROM webhook_row r WHERE r.scope_id = e.scope AND r.kind = e.kind COLLATE "C"
          AND r.id = e.id COLLATE "C" AND r.version = e.next)
        FROM unnest(p_unit, p_scope, p_kind, p_id, p_version, p_next) e (unit, scope, kind, id, version, next)
        WHERE e.version IS NULL AND e.unit = ANY (v_lost)));
      v_refused := v_refused || v_lost;
    END IF;
  END IF;
  IF p_old > 0 THEN
    UPDATE webhook_row r SET version = e.next, expires_at = e.expires, due_at = e.due, suspect_at = e.suspect,
      crashes = e.crashes, list = e.list, waits_for = e.waits, link = e.link, bytes = e.of,
      data = convert_from(substring(p_bytes FROM e.at_data + 1 FOR e.of_data), 'UTF8'),
      body = CASE WHEN e.at_body IS NULL THEN r.body
        WHEN e.at_body >= 0 THEN substring(p_bytes FROM e.at_body + 1 FOR e.of_body) END
      FROM unnest(p_unit, p_scope, p_kind, p_id, p_version, p_next, p_expires, p_due, p_suspect, p_crashes, p_list,
        p_waits, p_link, p_of, p_at_data, p_of_data, p_at_body, p_of_body)
        e (unit, scope, kind, id, version, next, expires, due, suspect, crashes, list, waits, link, of, at_data, of_data,
          at_body, of_body)
      CROSS JOIN LATERAL (SELECT x.ctid FROM webhook_row x WHERE x.scope_id = e.scope AND x.kind = e.kind COLLATE "C"
        AND x.id = e.id COLLATE "C" OFFSET 0) at
      WHERE e.version IS NOT NULL AND e.next IS NOT NULL AND e.unit <> ALL (v_refused) AND r.ctid = at.ctid;
  END IF;
  -- Last of all and sorted, for counts are what all transactions write.
  INSERT INTO webhook_tally AS n (scope_id, stripe, rows, bytes)
    SELECT c.scope, pg_backend_pid() % 16, sum(c.rows), sum(c.bytes)
    FROM unnest(p_tally_unit, p_tally_scope, p_tally_rows, p_tally_bytes) c (unit, scope, rows, bytes)
    WHERE c.unit <> ALL (v_refused) GROUP BY c.scope ORDER BY c.scope
    ON CONFLICT (scope_id, stripe) DO UPDATE SET rows = n.rows + excluded.rows, bytes = n.bytes + excluded.bytes;
  IF v_refused = '{}' AND p_counts IS NULL AND v_kept IS NULL THEN RETURN v_now; END IF;
  RETURN json_build_object('now', v_now, 'kept', v_kept, 'counts', CASE WHEN p_counts IS NOT NULL THEN webhook_counts(p_counts) END,
    'refused', to_json(v_refused),
    'rows', (SELECT json_agg(json_build_array(l.scope_id, l.kind, l.id, l.version, l.data)) FROM webhook_look(
      ARRAY(SELECT e.scope FROM unnest(p_scope, p_unit) e (scope, unit) WHERE e.unit = ANY (v_refused)),
      ARRAY(SELECT e.kind FROM unnest(p_kind, p_unit) e (kind, unit) WHERE e.unit = ANY (v_refused)),
      ARRAY(SELECT e.id FROM unnest(p_id, p_unit) e (id, unit) WHERE e.unit = ANY (v_refused))) l));
END $$;

-- Rows by name and what comes with them, some with their bodies. The first row is the clock, and the counts.
CREATE FUNCTION webhook_load(p_offset bigint, p_scopes integer[], p_kinds text[], p_ids text[],
  p_bodies boolean[], p_counts integer[])
RETURNS TABLE (scope_id integer, kind text, id text, version text, data text, body bytea)
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
BEGIN
  RETURN QUERY SELECT NULL::integer, NULL::text, NULL::text, webhook_clock(p_offset)::text,
    CASE WHEN p_counts IS NOT NULL THEN webhook_counts(p_counts)::text END, NULL::bytea;
  IF p_scopes IS NULL THEN RETURN; END IF;
  RETURN QUERY SELECT l.scope_id, l.kind, l.id, l.version::text, l.data,
      CASE WHEN EXISTS (SELECT FROM unnest(p_scopes, p_kinds, p_ids, p_bodies) e (scope_id, kind, id, body)
          WHERE e.body AND e.scope_id = l.scope_id AND e.kind = l.kind AND e.id = l.id)
        THEN (SELECT r.body FROM webhook_row r
          WHERE r.scope_id = l.scope_id AND r.kind = l.kind COLLATE "C" AND r.id = l.id COLLATE "C") END
    FROM webhook_look(p_scopes, p_kinds, p_ids) l ORDER BY l.seq;
END $$;

-- Whether a suspect is due.
CREATE FUNCTION webhook_has_suspect(p_now bigint, p_longest bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM webhook_row r WHERE r.suspect_at IS NOT NULL
    AND (r.suspect_at <= p_now OR r.suspect_at > p_now + p_longest))
$$;

-- Senders in the order of their turns, by their names from the one behind p_after on: those of p_of; null: all. It is made
-- part of the statement that has it, and so is read no further than that statement needs.
CREATE FUNCTION webhook_turn_order(p_of integer[], p_after text) RETURNS TABLE (id integer) LANGUAGE sql STABLE AS $$
  (SELECT s.id FROM unnest(p_of) o (id) CROSS JOIN LATERAL (SELECT x.id, x.sender FROM webhook_scope x WHERE x.id = o.id OFFSET 0) s
    ORDER BY s.sender <= p_after COLLATE "C", s.sender)
  UNION ALL (SELECT s.id FROM webhook_scope s WHERE p_of IS NULL AND s.key = '' AND s.sender > p_after COLLATE "C" ORDER BY s.sender)
  UNION ALL (SELECT s.id FROM webhook_scope s WHERE p_of IS NULL AND s.key = '' AND s.sender <= p_after COLLATE "C" ORDER BY s.sender)
$$;

-- Senders of what is due, where that is a few rows: null where they are more. Of these all senders have to be gone through.
CREATE FUNCTION webhook_due_scopes(p_now bigint, p_far bigint, p_few integer) RETURNS integer[] LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN count(*) < p_few THEN coalesce(array_agg(DISTINCT d.scope_id), '{}') END FROM (
    (SELECT r.scope_id FROM webhook_row r WHERE r.due_at IS NOT NULL AND -r.due_at >= -p_now ORDER BY -r.due_at DESC LIMIT p_few)
    UNION ALL
    (SELECT r.scope_id FROM webhook_row r WHERE r.due_at IS NOT NULL AND -r.due_at < -p_far ORDER BY -r.due_at LIMIT p_few)) d
$$;

-- Rows that are due but suspects, the earliest of each sender, then the second of each; senders by their names, from the
-- one behind p_after on. What would come due later than p_longest ms from now is due too, last. Each is due again after
-- p_hold ms. Not one that somebody else has locked. The first row is the clock, ms until another one comes due, and 's'
-- where a suspect is due; place: of those that are due, the order.
CREATE FUNCTION webhook_due(p_offset bigint, p_most integer, p_hold integer, p_longest bigint, p_after text)
RETURNS TABLE (sender text, scope_id integer, kind text, id text, version text, data text, body bytea, place bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_now bigint := webhook_clock(p_offset);
  v_next bigint;
  v_of integer[] := webhook_due_scopes(v_now, v_now + p_longest, p_most + 64);
  v_scopes integer[];
  v_ids text[];
  v_at tid[];
BEGIN
  -- That a row is left alone for a moment need not outlive the server.
  PERFORM set_config('synchronous_commit', 'off', true);
  -- The first senders in their order that have a row to give: no more are looked at than are asked for.
  v_scopes := ARRAY(SELECT c.id FROM webhook_turn_order(v_of, p_after) c
    CROSS JOIN LATERAL (SELECT FROM (VALUES (-1, v_now), (v_now + p_longest, 9223372036854775807)) w (since, until)
      CROSS JOIN LATERAL (SELECT FROM webhook_row r WHERE -r.scope_id = -c.id AND r.due_at IS NOT NULL
        AND r.due_at > w.since AND r.due_at <= w.until ORDER BY r.due_at, r.seq LIMIT 1 FOR UPDATE SKIP LOCKED) d LIMIT 1) d
    LIMIT p_most);
  WITH found AS (
    SELECT d.scope_id, d.id, d.ctid, o.place, row_number() OVER (PARTITION BY d.scope_id ORDER BY d.due_at, d.seq) AS turn
    FROM unnest(v_scopes) WITH ORDINALITY o (id, place)
    CROSS JOIN (VALUES (-1, v_now), (v_now + p_longest, 9223372036854775807)) w (since, until)
    CROSS JOIN LATERAL (SELECT r.scope_id, r.id, r.ctid, r.due_at, r.seq FROM webhook_row r
      WHERE -r.scope_id = -o.id AND r.due_at IS NOT NULL AND r.due_at > w.since AND r.due_at <= w.until
      ORDER BY r.due_at, r.seq LIMIT p_most + 1 - cardinality(v_scopes) FOR UPDATE SKIP LOCKED) d),
  taken AS (SELECT f.*, row_number() OVER (ORDER BY f.turn, f.place) AS nth FROM found f ORDER BY nth LIMIT p_most)
  SELECT array_agg(t.scope_id ORDER BY t.nth), array_agg(t.id ORDER BY t.nth), array_agg(t.ctid)
    INTO v_scopes, v_ids, v_at FROM taken t;
  v_next := (SELECT r.due_at FROM webhook_row r WHERE r.due_at IS NOT NULL AND -r.due_at < -v_now ORDER BY -r.due_at DESC LIMIT 1);
  UPDATE webhook_row r SET due_at = v_now + p_hold WHERE r.ctid = ANY (v_at);
  IF cardinality(v_ids) = p_most AND webhook_due_scopes(v_now, v_now + p_longest, 1) IS NULL THEN v_next := v_now; END IF;
  RETURN QUERY SELECT NULL::text, NULL::integer, CASE WHEN webhook_has_suspect(v_now, p_longest) THEN 's' END, NULL::text,
    v_now::text, (v_next - v_now)::text, NULL::bytea, NULL::bigint;
  IF v_ids IS NULL THEN RETURN; END IF;
  RETURN QUERY SELECT (SELECT c.sender FROM webhook_scope c WHERE c.id = l.scope_id), l.scope_id, l.kind, l.id,
      l.version::text, l.data, CASE WHEN e.place IS NOT NULL THEN (SELECT b.body FROM webhook_row b
        WHERE b.scope_id = l.scope_id AND b.kind = 'r' AND b.id = l.id COLLATE "C") END, e.place
    FROM webhook_look(v_scopes, array_fill('r'::text, ARRAY[cardinality(v_ids)]), v_ids) l
    LEFT JOIN unnest(v_scopes, v_ids) WITH ORDINALITY e (scope_id, id, place)
      ON e.scope_id = l.scope_id AND e.id = l.id AND l.kind = 'r'
    ORDER BY l.seq;
END $$;

-- Rows of registrations that are due, in the order of webhook_due: of a kind, by its instants, which begin with p_prefix. Reads
-- only. The first row is the clock and the instant of the first that comes due later.
CREATE FUNCTION webhook_turns(p_offset bigint, p_kind text, p_prefix text, p_most integer, p_longest bigint, p_after text)
RETURNS TABLE (sender text, scope_id integer, kind text, id text, version text, data text, body bytea)
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_now bigint := webhook_clock(p_offset);
  v_max bigint := 9007199254740991;
  v_least text := p_prefix || repeat('0', 16);
  v_latest text := p_prefix || lpad(v_now::text, 16, '0');
  v_far text := p_prefix || lpad((least(v_now + p_longest, v_max) + 1)::text, 16, '0');
  v_last text := p_prefix || v_max;
  v_few integer := p_most + 64;
  v_of integer[];
  v_scopes integer[];
BEGIN
  SELECT CASE WHEN count(*) < v_few THEN coalesce(array_agg(DISTINCT d.scope_id), '{}') END INTO v_of
    FROM (VALUES (v_least, v_latest), (v_far, v_last)) w (since, until) CROSS JOIN LATERAL (
      SELECT r.scope_id FROM webhook_row r WHERE r.waits_for < E'\x02' AND r.waits_for >= w.since COLLATE "C"
        AND r.waits_for <= w.until COLLATE "C" ORDER BY r.waits_for LIMIT v_few) d;
  v_scopes := ARRAY(SELECT c.id FROM webhook_turn_order(v_of, p_after) c WHERE EXISTS (
    SELECT FROM (VALUES (v_least, v_latest), (v_far, v_last)) w (since, until) CROSS JOIN LATERAL (
      SELECT FROM webhook_row r WHERE r.scope_id = c.id AND r.waits_for >= w.since COLLATE "C"
        AND r.waits_for <= w.until COLLATE "C" LIMIT 1) r)
    LIMIT p_most);
  RETURN QUERY SELECT NULL::text, NULL::integer, NULL::text, NULL::text, v_now::text, (SELECT r.waits_for FROM webhook_row r
    WHERE r.waits_for < E'\x02' AND r.waits_for > v_latest COLLATE "C" AND r.waits_for <= v_last COLLATE "C"
    ORDER BY r.waits_for LIMIT 1), NULL::bytea;
  RETURN QUERY WITH found AS (
    SELECT d.*, o.place, row_number() OVER (PARTITION BY d.scope_id ORDER BY d.waits_for, d.seq) AS turn
    FROM unnest(v_scopes) WITH ORDINALITY o (id, place) CROSS JOIN (VALUES (v_least, v_latest), (v_far, v_last)) w (since, until)
    CROSS JOIN LATERAL (SELECT r.scope_id, r.id, r.waits_for, r.seq FROM webhook_row r WHERE r.scope_id = o.id
      AND r.waits_for >= w.since COLLATE "C" AND r.waits_for <= w.until COLLATE "C"
      ORDER BY r.waits_for, r.seq LIMIT p_most + 1 - cardinality(v_scopes)) d)
  SELECT (SELECT c.sender FROM webhook_scope c WHERE c.id = t.scope_id), t.scope_id, p_kind, t.id, r.version::text, r.data, NULL::bytea
    FROM (SELECT f.* FROM found f ORDER BY f.turn, f.place LIMIT p_most) t
    CROSS JOIN LATERAL (SELECT x.version, x.data FROM webhook_row x
      WHERE x.scope_id = t.scope_id AND x.kind = p_kind COLLATE "C" AND x.id = t.id OFFSET 0) r
    ORDER BY t.turn, t.place;
END $$;

-- Of the suspects that are due the one with the fewest crashes, of those the oldest: as webhook_due gives rows.
CREATE FUNCTION webhook_suspect(p_offset bigint, p_hold integer, p_longest bigint)
RETURNS TABLE (sender text, scope_id integer, kind text, id text, version text, data text, body bytea, place bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_now bigint := webhook_clock(p_offset);
  v_scope integer;
  v_id text;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT r.scope_id, r.id INTO v_scope, v_id FROM webhook_row r
    WHERE r.suspect_at IS NOT NULL AND (r.suspect_at <= v_now OR r.suspect_at > v_now + p_longest)
    ORDER BY r.crashes, r.seq LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF v_id IS NOT NULL THEN
    UPDATE webhook_row r SET suspect_at = v_now + p_hold
      WHERE r.scope_id = v_scope AND r.kind = 'r' AND r.id = v_id COLLATE "C";
  END IF;
  RETURN QUERY SELECT NULL::text, NULL::integer, CASE WHEN webhook_has_suspect(v_now, p_longest) THEN 's' END, NULL::text,
    v_now::text, NULL::text, NULL::bytea, NULL::bigint;
  IF v_id IS NULL THEN RETURN; END IF;
  RETURN QUERY SELECT (SELECT c.sender FROM webhook_scope c WHERE c.id = l.scope_id), l.scope_id, l.kind, l.id,
      l.version::text, l.data, b.body, CASE WHEN b.id IS NOT NULL THEN 1::bigint END
    FROM webhook_look(ARRAY[v_scope], ARRAY['r'], ARRAY[v_id]) l
    LEFT JOIN webhook_row b ON l.kind = 'r' AND l.id = v_id COLLATE "C" AND l.scope_id = v_scope
      AND b.scope_id = v_scope AND b.kind = 'r' AND b.id = v_id COLLATE "C"
    ORDER BY l.seq;
END $$;

CREATE FUNCTION webhook_page(p_offset bigint, p_list text, p_sender text, p_after bigint, p_most integer)
RETURNS TABLE (sender text, scope_id integer, kind text, id text, version text, data text, body bytea, place bigint)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  RETURN QUERY SELECT c.sender, r.scope_id, r.kind, r.id, r.version::text, r.data, NULL::bytea, r.seq
    FROM webhook_row r JOIN webhook_scope c ON c.id = r.scope_id
    WHERE r.list IS NOT NULL AND r.list = p_list COLLATE "C" AND r.seq > p_after
      AND (p_sender IS NULL OR c.sender = p_sender COLLATE "C")
      AND (r.expires_at IS NULL OR r.expires_at > webhook_clock(p_offset))
    ORDER BY r.seq LIMIT p_most;
END $$;

-- Expired rows of a scope, or of all key ids (0), or of those of a sender (its scope, negative), some at a time. @returns
-- how many.
CREATE FUNCTION webhook_clear(p_scope integer, p_most integer, p_offset bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
DECLARE
  v_now bigint := webhook_clock(p_offset);
  v_deleted bigint;
BEGIN
  WITH gone AS (
    DELETE FROM webhook_row WHERE ctid = ANY (ARRAY(
      SELECT x.ctid FROM webhook_scope c CROSS JOIN LATERAL (SELECT r.ctid FROM webhook_row r
        WHERE r.scope_id = c.id AND r.expires_at IS NOT NULL AND r.expires_at <= v_now
        ORDER BY r.expires_at LIMIT p_most FOR UPDATE SKIP LOCKED) x
      WHERE c.id = p_scope OR (p_scope = 0 AND c.key <> '')
        OR (p_scope < 0 AND c.key <> '' AND c.sender = (SELECT o.sender FROM webhook_scope o WHERE o.id = -p_scope))
      LIMIT p_most))
    RETURNING scope_id, kind, bytes),
  counted AS (
    SELECT scope_id, count(*) AS rows, sum(bytes) AS bytes FROM gone GROUP BY 1
    UNION ALL SELECT 0, count(*), 0 FROM gone WHERE kind = 'n' HAVING count(*) > 0),
  told AS (
    INSERT INTO webhook_tally AS n (scope_id, stripe, rows, bytes)
      SELECT scope_id, pg_backend_pid() % 16, -rows, -bytes FROM counted ORDER BY scope_id
      ON CONFLICT (scope_id, stripe) DO UPDATE SET rows = n.rows + excluded.rows, bytes = n.bytes + excluded.bytes)
  SELECT count(*) INTO v_deleted FROM gone;
  RETURN v_deleted;
END $$;
