--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: version_3; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA version_3;


--
-- Name: webhook_begin(integer, text); Type: FUNCTION; Schema: version_3; Owner: -
--

CREATE FUNCTION version_3.webhook_begin(p_lock_ms integer, p_sync text) RETURNS void
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: webhook_clear(integer, integer, bigint); Type: FUNCTION; Schema: version_3; Owner: -
--

CREATE FUNCTION version_3.webhook_clear(p_scope integer, p_most integer, p_offset bigint) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'version_3', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
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


--
-- Name: webhook_clock(bigint); Type: FUNCTION; Schema: version_3; Owner: -
--

CREATE FUNCTION version_3.webhook_clock(p_offset bigint) RETURNS bigint
    LANGUAGE sql
    AS $$
  SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + p_offset
$$;


--
-- Name: webhook_commit(bigint, bigint, integer, text, boolean, integer, integer, integer[], integer[], text[], text[], bigint[], bigint[], bigint[], bigint[], bigint[], integer[], text[], text[], text[], integer[], integer[], integer[], integer[], integer[], bytea, integer[], integer[], bigint[], bigint[], integer[], integer[], bigint[], bigint[], integer[], text, text); Type: FUNCTION; Schema: version_3; Owner: -
--

CREATE FUNCTION version_3.webhook_commit(p_at bigint, p_offset bigint, p_lock_ms integer, p_sync text, p_reads boolean, p_new integer, p_old integer, p_unit integer[], p_scope integer[], p_kind text[], p_id text[], p_version bigint[], p_next bigint[], p_expires bigint[], p_due bigint[], p_suspect bigint[], p_crashes integer[], p_list text[], p_waits text[], p_link text[], p_of integer[], p_at_data integer[], p_of_data integer[], p_at_body integer[], p_of_body integer[], p_bytes bytea, p_tally_unit integer[], p_tally_scope integer[], p_tally_rows bigint[], p_tally_bytes bigint[], p_exact_unit integer[], p_exact_scope integer[], p_exact_rows bigint[], p_exact_bytes bigint[], p_counts integer[], p_names text, p_started text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO 'version_3', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
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
  IF p_at < v_now - 1000 OR p_at > v_now + 5 THEN RETURN json_build_object('now', v_now, 'old', true); END IF;
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
  -- Near a cap: one at a time for each scope, and over what they have counted.
  IF p_exact_unit IS NOT NULL THEN
    PERFORM FROM webhook_scope WHERE id = ANY (p_exact_scope) ORDER BY id FOR UPDATE;
    v_refused := ARRAY(SELECT DISTINCT e.unit
      FROM unnest(p_exact_unit, p_exact_scope, p_exact_rows, p_exact_bytes) e (unit, scope, rows, bytes)
      WHERE (SELECT ROW(coalesce(sum(t.rows), 0)::bigint, coalesce(sum(t.bytes), 0)::bigint) FROM webhook_tally t
        WHERE t.scope_id = e.scope) IS DISTINCT FROM ROW(e.rows, e.bytes));
  END IF;
  -- Locked in their order, and compared as they are then.
  IF p_version IS NOT NULL THEN
    v_refused := v_refused || ARRAY(SELECT e.unit
      FROM unnest(p_unit, p_scope, p_kind, p_id, p_version) e (unit, scope, kind, id, version)
      WHERE e.version IS NOT NULL AND e.version IS DISTINCT FROM (SELECT r.version FROM webhook_row r
        WHERE r.scope_id = e.scope AND r.kind = e.kind COLLATE "C" AND r.id = e.id COLLATE "C" FOR UPDATE));
  END IF;
  IF p_reads THEN
    v_refused := v_refused || ARRAY(SELECT e.unit
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
      v_lost := ARRAY(SELECT e.unit
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


--
-- Name: webhook_counts(integer[]); Type: FUNCTION; Schema: version_3; Owner: -
--

CREATE FUNCTION version_3.webhook_counts(p_scopes integer[]) RETURNS json
    LANGUAGE sql STABLE
    AS $$
  SELECT json_agg(json_build_array(s.id, coalesce(c.rows, 0), coalesce(c.bytes, 0), (
    SELECT sum((SELECT sum(t.rows::float8) FROM webhook_tally t WHERE t.scope_id = k.id)) FROM webhook_scope k
      WHERE k.sender = (SELECT o.sender FROM webhook_scope o WHERE o.id = s.id AND o.key = '') AND k.key <> '')))
  FROM unnest(p_scopes || 0) s (id) CROSS JOIN LATERAL (
    -- Sums of bigint are numeric, which costs more than all the rest.
    SELECT sum(t.rows::float8) AS rows, sum(t.bytes::float8) AS bytes FROM webhook_tally t WHERE t.scope_id = s.id) c
$$;


--
-- Name: webhook_due(bigint, integer, integer, text); Type: FUNCTION; Schema: version_3; Owner: -
--

CREATE FUNCTION version_3.webhook_due(p_offset bigint, p_most integer, p_hold integer, p_after text) RETURNS TABLE(sender text, scope_id integer, kind text, id text, version text, data text, body bytea, place bigint)
    LANGUAGE plpgsql
    SET search_path TO 'version_3', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
  v_now bigint := webhook_clock(p_offset);
  v_next bigint;
  v_scopes integer[];
  v_ids text[];
  v_at tid[];
  v_found bigint;
BEGIN
  -- That a row is left alone for a moment need not outlive the server.
  PERFORM set_config('synchronous_commit', 'off', true);
  WITH RECURSIVE scope AS (
    (SELECT -r.scope_id AS of FROM webhook_row r WHERE r.due_at IS NOT NULL ORDER BY -r.scope_id LIMIT 1)
    UNION ALL SELECT (SELECT -r.scope_id FROM webhook_row r WHERE r.due_at IS NOT NULL AND -r.scope_id > s.of
      ORDER BY -r.scope_id LIMIT 1) FROM scope s WHERE s.of IS NOT NULL),
  found AS (
    SELECT d.scope_id, d.id, d.ctid, (SELECT c.sender FROM webhook_scope c WHERE c.id = d.scope_id) AS sender,
      row_number() OVER (PARTITION BY d.scope_id ORDER BY d.due_at, d.seq) AS turn
    FROM scope s CROSS JOIN LATERAL (SELECT r.scope_id, r.id, r.ctid, r.due_at, r.seq FROM webhook_row r
      WHERE -r.scope_id = s.of AND r.due_at IS NOT NULL AND r.due_at <= v_now
      ORDER BY r.due_at, r.seq LIMIT p_most + 1 FOR UPDATE SKIP LOCKED) d),
  taken AS (SELECT f.*, row_number() OVER (ORDER BY f.turn, f.sender <= p_after COLLATE "C", f.sender) AS nth
    FROM found f ORDER BY nth LIMIT p_most)
  SELECT array_agg(t.scope_id ORDER BY t.nth), array_agg(t.id ORDER BY t.nth), array_agg(t.ctid),
    (SELECT count(*) FROM found),
    (SELECT min(l.due_at) FROM scope s CROSS JOIN LATERAL (SELECT r.due_at FROM webhook_row r
      WHERE -r.scope_id = s.of AND r.due_at IS NOT NULL AND r.due_at > v_now ORDER BY r.due_at LIMIT 1) l)
    INTO v_scopes, v_ids, v_at, v_found, v_next FROM taken t;
  IF v_found > p_most THEN v_next := v_now; END IF;
  RETURN QUERY SELECT NULL::text, NULL::integer, CASE WHEN webhook_has_suspect(v_now) THEN 's' END, NULL::text,
    v_now::text, (v_next - v_now)::text, NULL::bytea, NULL::bigint;
  IF v_ids IS NULL THEN RETURN; END IF;
  UPDATE webhook_row r SET due_at = v_now + p_hold WHERE r.ctid = ANY (v_at);
  RETURN QUERY SELECT (SELECT c.sender FROM webhook_scope c WHERE c.id = l.scope_id), l.scope_id, l.kind, l.id,
      l.version::text, l.data, CASE WHEN e.place IS NOT NULL THEN (SELECT b.body FROM webhook_row b
        WHERE b.scope_id = l.scope_id AND b.kind = 'r' AND b.id = l.id COLLATE "C") END, e.place
    FROM webhook_look(v_scopes, array_fill('r'::text, ARRAY[cardinality(v_ids)]), v_ids) l
    LEFT JOIN unnest(v_scopes, v_ids) WITH ORDINALITY e (scope_id, id, place)
      ON e.scope_id = l.scope_id AND e.id = l.id AND l.kind = 'r'
    ORDER BY l.seq;
END $$;


--
-- Name: webhook_far(bigint, bigint, integer); Type: FUNCTION; Schema: version_3; Owner: -
--

CREATE FUNCTION version_3.webhook_far(p_offset bigint, p_after bigint, p_most integer) RETURNS TABLE(now text, rows json)
    LANGUAGE plpgsql
    SET search_path TO 'version_3', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
  v_now bigint := webhook_clock(p_offset);
BEGIN
  RETURN QUERY SELECT v_now::text, (SELECT json_agg(json_build_array(d.sender, d.id)) FROM
    (SELECT s.sender, f.id FROM webhook_scope s CROSS JOIN LATERAL
      (SELECT r.id FROM webhook_row r WHERE -r.scope_id = -s.id AND r.due_at IS NOT NULL AND r.due_at > v_now + p_after
        ORDER BY r.due_at DESC LIMIT p_most) f WHERE s.key = ''
      UNION ALL (SELECT (SELECT s.sender FROM webhook_scope s WHERE s.id = r.scope_id), r.id FROM webhook_row r
        WHERE r.suspect_at IS NOT NULL AND r.suspect_at > v_now + p_after LIMIT p_most)) d);
END $$;


--
-- Name: webhook_has_suspect(bigint); Type: FUNCTION; Schema: version_3; Owner: -
--

CREATE FUNCTION version_3.webhook_has_suspect(p_now bigint) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
  SELECT EXISTS (SELECT FROM webhook_row r WHERE r.suspect_at IS NOT NULL AND r.suspect_at <= p_now)
$$;


--
-- Name: webhook_load(bigint, integer[], text[], text[], boolean[], integer[]); Type: FUNCTION; Schema: version_3; Owner: -
--

CREATE FUNCTION version_3.webhook_load(p_offset bigint, p_scopes integer[], p_kinds text[], p_ids text[], p_bodies boolean[], p_counts integer[]) RETURNS TABLE(scope_id integer, kind text, id text, version text, data text, body bytea)
    LANGUAGE plpgsql
    SET search_path TO 'version_3', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
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


--
-- Name: webhook_look(integer[], text[], text[]); Type: FUNCTION; Schema: version_3; Owner: -
--

CREATE FUNCTION version_3.webhook_look(p_scopes integer[], p_kinds text[], p_ids text[]) RETURNS TABLE(scope_id integer, kind text, id text, version bigint, data text, seq bigint)
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: webhook_page(bigint, text, text, bigint, integer); Type: FUNCTION; Schema: version_3; Owner: -
--

CREATE FUNCTION version_3.webhook_page(p_offset bigint, p_list text, p_sender text, p_after bigint, p_most integer) RETURNS TABLE(sender text, scope_id integer, kind text, id text, version text, data text, body bytea, place bigint)
    LANGUAGE plpgsql
    SET search_path TO 'version_3', 'pg_temp'
    AS $$
BEGIN
  RETURN QUERY SELECT c.sender, r.scope_id, r.kind, r.id, r.version::text, r.data, NULL::bytea, r.seq
    FROM webhook_row r JOIN webhook_scope c ON c.id = r.scope_id
    WHERE r.list IS NOT NULL AND r.list = p_list COLLATE "C" AND r.seq > p_after
      AND (p_sender IS NULL OR c.sender = p_sender COLLATE "C")
      AND (r.expires_at IS NULL OR r.expires_at > webhook_clock(p_offset))
    ORDER BY r.seq LIMIT p_most;
END $$;


--
-- Name: webhook_scopes(text[], text[]); Type: FUNCTION; Schema: version_3; Owner: -
--

CREATE FUNCTION version_3.webhook_scopes(p_senders text[], p_keys text[]) RETURNS TABLE(id integer)
    LANGUAGE plpgsql
    SET search_path TO 'version_3', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
  INSERT INTO webhook_scope (sender, key) SELECT DISTINCT e.sender COLLATE "C", e.key COLLATE "C"
    FROM unnest(p_senders, p_keys) e (sender, key) ORDER BY 1, 2 ON CONFLICT DO NOTHING;
  RETURN QUERY SELECT s.id FROM unnest(p_senders, p_keys) WITH ORDINALITY e (sender, key, place)
    JOIN webhook_scope s ON s.sender = e.sender COLLATE "C" AND s.key = e.key COLLATE "C" ORDER BY e.place;
END $$;


--
-- Name: webhook_suspect(bigint, integer); Type: FUNCTION; Schema: version_3; Owner: -
--

CREATE FUNCTION version_3.webhook_suspect(p_offset bigint, p_hold integer) RETURNS TABLE(sender text, scope_id integer, kind text, id text, version text, data text, body bytea, place bigint)
    LANGUAGE plpgsql
    SET search_path TO 'version_3', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
  v_now bigint := webhook_clock(p_offset);
  v_scope integer;
  v_id text;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT r.scope_id, r.id INTO v_scope, v_id FROM webhook_row r
    WHERE r.suspect_at IS NOT NULL AND r.suspect_at <= v_now ORDER BY r.crashes, r.seq LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF v_id IS NOT NULL THEN
    UPDATE webhook_row r SET suspect_at = v_now + p_hold
      WHERE r.scope_id = v_scope AND r.kind = 'r' AND r.id = v_id COLLATE "C";
  END IF;
  RETURN QUERY SELECT NULL::text, NULL::integer, CASE WHEN webhook_has_suspect(v_now) THEN 's' END, NULL::text,
    v_now::text, NULL::text, NULL::bytea, NULL::bigint;
  IF v_id IS NULL THEN RETURN; END IF;
  RETURN QUERY SELECT (SELECT c.sender FROM webhook_scope c WHERE c.id = l.scope_id), l.scope_id, l.kind, l.id,
      l.version::text, l.data, b.body, CASE WHEN b.id IS NOT NULL THEN 1::bigint END
    FROM webhook_look(ARRAY[v_scope], ARRAY['r'], ARRAY[v_id]) l
    LEFT JOIN webhook_row b ON l.kind = 'r' AND l.id = v_id COLLATE "C" AND l.scope_id = v_scope
      AND b.scope_id = v_scope AND b.kind = 'r' AND b.id = v_id COLLATE "C"
    ORDER BY l.seq;
END $$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: webhook_identity; Type: TABLE; Schema: version_3; Owner: -
--

CREATE TABLE version_3.webhook_identity (
    id text NOT NULL,
    told boolean NOT NULL
);


--
-- Name: webhook_row; Type: TABLE; Schema: version_3; Owner: -
--

CREATE TABLE version_3.webhook_row (
    version bigint NOT NULL,
    seq bigint NOT NULL,
    expires_at bigint,
    due_at bigint,
    suspect_at bigint,
    scope_id integer NOT NULL,
    bytes integer NOT NULL,
    crashes integer,
    kind text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    list text COLLATE pg_catalog."C",
    waits_for text COLLATE pg_catalog."C",
    link text COLLATE pg_catalog."C",
    data text NOT NULL COLLATE pg_catalog."C",
    body bytea
);
ALTER TABLE ONLY version_3.webhook_row ALTER COLUMN body SET STORAGE EXTERNAL;


--
-- Name: webhook_row_seq_seq; Type: SEQUENCE; Schema: version_3; Owner: -
--

ALTER TABLE version_3.webhook_row ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME version_3.webhook_row_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: webhook_schema; Type: TABLE; Schema: version_3; Owner: -
--

CREATE TABLE version_3.webhook_schema (
    version integer NOT NULL
);


--
-- Name: webhook_scope; Type: TABLE; Schema: version_3; Owner: -
--

CREATE TABLE version_3.webhook_scope (
    id integer NOT NULL,
    sender text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: webhook_scope_id_seq; Type: SEQUENCE; Schema: version_3; Owner: -
--

ALTER TABLE version_3.webhook_scope ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME version_3.webhook_scope_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: webhook_tally; Type: TABLE; Schema: version_3; Owner: -
--

CREATE TABLE version_3.webhook_tally (
    scope_id integer NOT NULL,
    stripe integer NOT NULL,
    rows bigint NOT NULL,
    bytes bigint NOT NULL
)
WITH (fillfactor='25');


--
-- Data for Name: webhook_identity; Type: TABLE DATA; Schema: version_3; Owner: -
--

INSERT INTO version_3.webhook_identity VALUES ('99c57e2e-7219-a82a-9138-4be68411c8c1', false);


--
-- Data for Name: webhook_row; Type: TABLE DATA; Schema: version_3; Owner: -
--

INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622759, 1, NULL, 1795486273191, NULL, 1, 23, NULL, 'r', 'event-0001-of-the-seller', 'queued', NULL, NULL, '{"state":"queued","claim":"queued","claimedBy":"00000000-0000-4000-8000-000000000001","acked":true,"insertedAt":1795486273191,"notBefore":1795486273191,"rawHash":"19c7392823396bdf766dd61114fe57ae31793d618e64987ae5483af3a19227ab","bodyBytes":23}', '\x7b226576656e74223a312c226e6f7465223a22c3a9227d');
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622759, 2, 1795486633191, NULL, NULL, 2, 0, NULL, 'n', 'nonce-1', NULL, NULL, NULL, '{"key":"event-0001-of-the-seller","acceptId":"00000000-0000-4000-8000-000000000001","expiresAt":1795486633191}', NULL);
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622760, 5, 1795486633197, NULL, NULL, 2, 0, NULL, 'n', 'nonce-2', NULL, NULL, NULL, '{"key":"event-0002-of-the-seller","acceptId":"00000000-0000-4000-8000-000000000002","expiresAt":1795486633197}', NULL);
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622761, 3, 1798078273199, NULL, NULL, 1, 0, NULL, 't', 'task-2', NULL, NULL, NULL, '{"mark":"2026-01-02T00:00:00Z","expiresAt":1798078273199}', NULL);
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622761, 4, 1795572673199, NULL, NULL, 1, 0, NULL, 'r', 'event-0002-of-the-seller', NULL, NULL, 'task-2', '{"state":"applied","claim":"won","claimedBy":"00000000-0000-4000-8000-000000000002","owner":"00000000-0000-4000-8000-000000000002","fence":1,"leaseUntil":1795486873197,"attempts":1,"acked":true,"insertedAt":1795486273197,"notBefore":1795486273197,"rawHash":"62014c18767f655208f5f41eb83c00a32955f3b961f72d914b29a8725171d3e3","task":{"id":"task-2","instant":"2026-01-02T00:00:00Z","instantMs":1767312000000,"terminal":false},"expiresAt":1795572673199}', NULL);
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622762, 7, 1795486633210, NULL, NULL, 2, 0, NULL, 'n', 'nonce-3', NULL, NULL, NULL, '{"key":"event-0003-of-the-seller","acceptId":"00000000-0000-4000-8000-000000000003","expiresAt":1795486633210}', NULL);
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622763, 6, NULL, NULL, NULL, 1, 23, NULL, 'r', 'event-0003-of-the-seller', 'dead', NULL, NULL, '{"state":"dead","claim":"won","claimedBy":"00000000-0000-4000-8000-000000000003","owner":"00000000-0000-4000-8000-000000000003","fence":1,"leaseUntil":1795486873210,"attempts":1,"acked":true,"insertedAt":1795486273210,"notBefore":1795486273210,"lastError":"the handler failed","rawHash":"882a7ba858501db45b58bb6442ab57b714272efdb765dad1d65e11966ae42fa3","bodyBytes":23}', '\x7b226576656e74223a332c226e6f7465223a22c3a9227d');
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622764, 9, 1795572673215, NULL, NULL, 1, 23, NULL, 'r', 'event-0004-of-the-seller', 'leased', NULL, 'task-4', '{"state":"leased","claim":"won","claimedBy":"00000000-0000-4000-8000-000000000004","owner":"00000000-0000-4000-8000-000000000004","fence":1,"leaseUntil":1795486873215,"attempts":1,"insertedAt":1795486273215,"notBefore":1795486273215,"rawHash":"0c2016fe1d62f60d2a555c33e5a8e696cbdeb8901126d0b2992da0a07f300f31","task":{"id":"task-4","instant":"2026-01-02T00:00:00Z","instantMs":1767312000000,"terminal":false},"bodyBytes":23,"expiresAt":1795572673215}', '\x7b226576656e74223a342c226e6f7465223a22c3a9227d');
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622764, 10, 1795486633215, NULL, NULL, 2, 0, NULL, 'n', 'nonce-4', NULL, NULL, NULL, '{"key":"event-0004-of-the-seller","acceptId":"00000000-0000-4000-8000-000000000004","expiresAt":1795486633215}', NULL);
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622765, 11, NULL, 1795486873215, NULL, 1, 23, NULL, 'r', 'event-0005-of-the-seller', 'queued', 'task-4', 'task-4', '{"state":"queued","claim":"queued","claimedBy":"00000000-0000-4000-8000-000000000005","acked":true,"insertedAt":1795486273216,"notBefore":1795486273216,"parkedUntil":1795486873215,"rawHash":"f1d1e43605ff9137fb2f392b99d99c2337a2215cf602b6d159ee1581c4b2c8b1","task":{"id":"task-4","instant":"2026-01-03T00:00:00Z","instantMs":1767398400000,"terminal":false},"bodyBytes":23}', '\x7b226576656e74223a352c226e6f7465223a22c3a9227d');
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622765, 12, 1795486633216, NULL, NULL, 2, 0, NULL, 'n', 'nonce-5', NULL, NULL, NULL, '{"key":"event-0005-of-the-seller","acceptId":"00000000-0000-4000-8000-000000000005","expiresAt":1795486633216}', NULL);
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622765, 8, 1798078273216, NULL, NULL, 1, 0, NULL, 't', 'task-4', NULL, NULL, 'event-0004-of-the-seller', '{"holder":"event-0004-of-the-seller","waiting":true,"expiresAt":1798078273216}', NULL);
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622766, 14, 1795486633218, NULL, NULL, 2, 0, NULL, 'n', 'nonce-6', NULL, NULL, NULL, '{"key":"event-0006-of-the-seller","acceptId":"00000000-0000-4000-8000-000000000006","expiresAt":1795486633218}', NULL);
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622766, 15, 1798078273218, NULL, NULL, 1, 0, NULL, 'i', 'note-1', NULL, NULL, NULL, '{"key":"event-0006-of-the-seller","expiresAt":1798078273218}', NULL);
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622767, 13, 1795572673220, NULL, NULL, 1, 0, NULL, 'r', 'event-0006-of-the-seller', NULL, NULL, NULL, '{"state":"applied","claim":"won","claimedBy":"00000000-0000-4000-8000-000000000006","owner":"00000000-0000-4000-8000-000000000006","fence":1,"leaseUntil":1795486873218,"attempts":1,"acked":true,"insertedAt":1795486273218,"notBefore":1795486273218,"rawHash":"e4f0d3cebc06be82248f0f1ac7a9642fc029a9a41b1c8e92a03f27686bf0bcfb","expiresAt":1795572673220}', NULL);
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622768, 17, 1795486633221, NULL, NULL, 2, 0, NULL, 'n', 'nonce-7', NULL, NULL, NULL, '{"key":"event-0007-of-the-seller","acceptId":"00000000-0000-4000-8000-000000000007","expiresAt":1795486633221}', NULL);
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622768, 18, 1798078273221, NULL, NULL, 1, 0, NULL, 'i', '"\u0001buy-1"', NULL, NULL, NULL, '{"key":"event-0007-of-the-seller","expiresAt":1798078273221}', NULL);
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622769, 16, 1795572673222, NULL, NULL, 1, 0, NULL, 'r', 'event-0007-of-the-seller', NULL, NULL, NULL, '{"state":"applied","claim":"won","claimedBy":"00000000-0000-4000-8000-000000000007","owner":"00000000-0000-4000-8000-000000000007","fence":1,"leaseUntil":1795486873221,"attempts":1,"acked":true,"insertedAt":1795486273221,"notBefore":1795486273221,"rawHash":"40c02c060969d6cc974044ac0008673cf3c9bda05b83251de8999da471bc99f8","expiresAt":1795572673222}', NULL);
INSERT INTO version_3.webhook_row OVERRIDING SYSTEM VALUE VALUES (2475974119622770, 19, 1795486633224, NULL, NULL, 2, 0, NULL, 'n', 'nonce-8', NULL, NULL, NULL, '{"acceptId":"00000000-0000-4000-8000-000000000008","expiresAt":1795486633224}', NULL);


--
-- Data for Name: webhook_schema; Type: TABLE DATA; Schema: version_3; Owner: -
--

INSERT INTO version_3.webhook_schema VALUES (3);


--
-- Data for Name: webhook_scope; Type: TABLE DATA; Schema: version_3; Owner: -
--

INSERT INTO version_3.webhook_scope OVERRIDING SYSTEM VALUE VALUES (1, 'https://seller.example/mcp', '');
INSERT INTO version_3.webhook_scope OVERRIDING SYSTEM VALUE VALUES (2, 'https://seller.example/mcp', '=seller-2026');


--
-- Data for Name: webhook_tally; Type: TABLE DATA; Schema: version_3; Owner: -
--

INSERT INTO version_3.webhook_tally VALUES (0, 2, 2, 0);
INSERT INTO version_3.webhook_tally VALUES (1, 2, 3, 46);
INSERT INTO version_3.webhook_tally VALUES (2, 2, 2, 0);
INSERT INTO version_3.webhook_tally VALUES (1, 3, 8, 46);
INSERT INTO version_3.webhook_tally VALUES (0, 3, 6, 0);
INSERT INTO version_3.webhook_tally VALUES (2, 3, 6, 0);


--
-- Name: webhook_row_seq_seq; Type: SEQUENCE SET; Schema: version_3; Owner: -
--

SELECT pg_catalog.setval('version_3.webhook_row_seq_seq', 19, true);


--
-- Name: webhook_scope_id_seq; Type: SEQUENCE SET; Schema: version_3; Owner: -
--

SELECT pg_catalog.setval('version_3.webhook_scope_id_seq', 2, true);


--
-- Name: webhook_row webhook_row_pkey; Type: CONSTRAINT; Schema: version_3; Owner: -
--

ALTER TABLE ONLY version_3.webhook_row
    ADD CONSTRAINT webhook_row_pkey PRIMARY KEY (scope_id, kind, id);


--
-- Name: webhook_scope webhook_scope_pkey; Type: CONSTRAINT; Schema: version_3; Owner: -
--

ALTER TABLE ONLY version_3.webhook_scope
    ADD CONSTRAINT webhook_scope_pkey PRIMARY KEY (id);


--
-- Name: webhook_scope webhook_scope_sender_key_key; Type: CONSTRAINT; Schema: version_3; Owner: -
--

ALTER TABLE ONLY version_3.webhook_scope
    ADD CONSTRAINT webhook_scope_sender_key_key UNIQUE (sender, key);


--
-- Name: webhook_tally webhook_tally_pkey; Type: CONSTRAINT; Schema: version_3; Owner: -
--

ALTER TABLE ONLY version_3.webhook_tally
    ADD CONSTRAINT webhook_tally_pkey PRIMARY KEY (scope_id, stripe);


--
-- Name: webhook_row_due; Type: INDEX; Schema: version_3; Owner: -
--

CREATE INDEX webhook_row_due ON version_3.webhook_row USING btree (((- scope_id)), due_at, seq) WHERE (due_at IS NOT NULL);


--
-- Name: webhook_row_expiry; Type: INDEX; Schema: version_3; Owner: -
--

CREATE INDEX webhook_row_expiry ON version_3.webhook_row USING btree (scope_id, expires_at) WHERE (expires_at IS NOT NULL);


--
-- Name: webhook_row_list; Type: INDEX; Schema: version_3; Owner: -
--

CREATE INDEX webhook_row_list ON version_3.webhook_row USING btree (seq) WHERE (list IS NOT NULL);


--
-- Name: webhook_row_suspect; Type: INDEX; Schema: version_3; Owner: -
--

CREATE INDEX webhook_row_suspect ON version_3.webhook_row USING btree (crashes, seq) WHERE (suspect_at IS NOT NULL);


--
-- Name: webhook_row_waits; Type: INDEX; Schema: version_3; Owner: -
--

CREATE INDEX webhook_row_waits ON version_3.webhook_row USING btree (scope_id, waits_for, seq) WHERE (waits_for IS NOT NULL);


--
-- PostgreSQL database dump complete
--


