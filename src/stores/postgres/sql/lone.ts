import { CALLS_CAPS, isNear } from './words.ts';

/**
 * How a transaction of one call begins, in the usual case: the same locks in the same order as `webhook_lock`'s, by looks
 * at single rows. A statement over a set costs several times as much to begin, and a lone call would wait for it.
 *
 *     webhook_lock_lone  step, call → locked as by `webhook_lock`; or nothing locked and `exact` null, where the sender
 *                        or the key id is new, a cap is near, or a report names media buys
 */
export const LONE: string = `
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
    IF ${isNear({ entries: 'coalesce(v_entries, 0)', bytes: 'coalesce(v_bytes, 0)', nonces: 'coalesce(v_nonces, 0)' }, CALLS_CAPS)} THEN
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
`;
