/**
 * How a transaction begins (`run.ts` says why in this order).
 *
 *     webhook_enter         lock ms, sync → fails with PW002 unless READ COMMITTED; sets what lasts until the commit
 *     webhook_register      calls → new senders and key ids have their rows
 *     webhook_lock          step, calls → senders, buckets and tasks locked; `exact`: senders that are locked alone;
 *                           `tasks`: buckets of the tasks
 *     webhook_lock_buckets  class, buckets → locked until the commit, lowest first
 *     webhook_fit           calls → nonces and key ids that are too long for an index in the form of their SHA-256
 */
export const LOCK = `
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
CREATE FUNCTION webhook_lock_buckets(p_class integer, p_buckets integer[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_bucket integer;
BEGIN
  FOR v_bucket IN SELECT DISTINCT b FROM unnest(p_buckets) b ORDER BY 1 LOOP
    PERFORM pg_advisory_xact_lock(p_class, v_bucket);
  END LOOP;
END $$;
CREATE FUNCTION webhook_lock(s webhook_step, p_calls webhook_call[]) RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_class integer := webhook_class('sender');
  v record;
BEGIN
  s.exact := '{}';
  FOR v IN
    SELECT w.id, coalesce(bool_or(e.entries + 10000 >= c.records OR e.bytes + 67108864 >= c.bytes
      OR n.nonces + 10000 >= c.nonces), false) AS near
    FROM (SELECT sender, keyid, min(max_records) AS records, min(max_bytes) AS bytes, min(max_key_nonces) AS nonces
      FROM unnest(p_calls) WHERE op = 'accept' GROUP BY sender, keyid) c
    JOIN webhook_sender w ON w.url = c.sender
    LEFT JOIN webhook_keyid k ON k.sender_id = w.id AND k.keyid = c.keyid
    CROSS JOIN LATERAL (SELECT coalesce(sum(entries), 0) AS entries, coalesce(sum(pending_bytes), 0) AS bytes
      FROM webhook_count WHERE sender_id = w.id AND keyid_id = 0) e
    CROSS JOIN LATERAL (SELECT coalesce(sum(nonces), 0) AS nonces
      FROM webhook_count WHERE sender_id = w.id AND keyid_id = k.id) n
    GROUP BY w.id ORDER BY w.id
  LOOP
    IF v.near THEN
      PERFORM pg_advisory_xact_lock(v_class, v.id);
      s.exact := s.exact || v.id;
    ELSE
      PERFORM pg_advisory_xact_lock_shared(v_class, v.id);
    END IF;
  END LOOP;
  PERFORM webhook_lock_buckets(webhook_class('bucket'), ARRAY(
    SELECT webhook_bucket(w.id, x.resource, 128) FROM unnest(p_calls) c JOIN webhook_sender w ON w.url = c.sender
    CROSS JOIN LATERAL (
      VALUES ('k' || c.key), ('n' || c.keyid || ' ' || c.nonce), ('i' || c.notification_id)
      UNION ALL SELECT 'i' || m FROM unnest(c.media_buys) m) x (resource)
    WHERE x.resource IS NOT NULL AND c.op <> 'peek'));
  -- A changed payload may name another task than the record that it meets. OFFSET 0: one look by the whole key for each
  -- call; planners that take the table for small would read all of the sender's records.
  s.tasks := ARRAY(
    SELECT webhook_bucket(w.id, x.task, 4096) FROM unnest(p_calls) c JOIN webhook_sender w ON w.url = c.sender
    LEFT JOIN LATERAL (SELECT task_id FROM webhook_record WHERE sender_id = w.id AND key = c.key OFFSET 0) r ON true
    CROSS JOIN LATERAL (VALUES (c.task_id), (r.task_id)) x (task)
    WHERE x.task IS NOT NULL AND c.op <> 'peek');
  PERFORM webhook_lock_buckets(webhook_class('task'), s.tasks);
  RETURN s;
END $$;
CREATE FUNCTION webhook_fit(p_calls webhook_call[]) RETURNS webhook_call[] LANGUAGE plpgsql AS $$
DECLARE
  c webhook_call;
  v_fit webhook_call[] := '{}';
BEGIN
  FOREACH c IN ARRAY p_calls LOOP
    IF length(c.nonce) > 512 THEN c.nonce := chr(2) || encode(sha256(convert_to(c.nonce, 'UTF8')), 'hex'); END IF;
    IF length(c.keyid) > 512 THEN c.keyid := chr(2) || encode(sha256(convert_to(c.keyid, 'UTF8')), 'hex'); END IF;
    v_fit := v_fit || c;
  END LOOP;
  RETURN v_fit;
END $$;
`;
