import { isNear } from './words.ts';

/**
 * How a transaction begins (`run.ts` says why in this order).
 *
 *     webhook_enter         lock ms, sync → fails with PW002 unless READ COMMITTED; sets what lasts until the commit
 *     webhook_register      calls → new senders and key ids have their rows
 *     webhook_lock_senders  calls, senders of fresh calls (`fresh.ts`) → locked; those that are locked alone
 *     webhook_lock          step, calls, fresh calls, guards of completions (`ends.ts`) → buckets and guards locked;
 *                           `tasks`: the guards
 *     webhook_lock_buckets  class, buckets, buckets → locked until the commit, lowest first: those alone, these shared
 *     webhook_fit           calls → nonces and key ids that are too long for an index in the form of their SHA-256
 */
export const LOCK: string = `
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
    SELECT w.id, coalesce(${isNear({ entries: 'e.entries', bytes: 'e.bytes', nonces: 'n.nonces' }, { entries: 'c.records', bytes: 'c.bytes', nonces: 'c.nonces' })}, false)
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
`;
