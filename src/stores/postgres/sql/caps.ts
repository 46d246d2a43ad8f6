/**
 * Caps (verification.md §2.9a; contract.md §9.6), and what clears the room.
 *
 *     webhook_purge         step, kind (0 nonces of the key id, 1 records, 2 tasks, 3 notification ids of the sender),
 *                           at most → expired ones deleted, earliest first, and taken off the counts. Rows that
 *                           somebody uses are passed over (SKIP LOCKED): it never waits, nobody waits for it
 *     webhook_purge_nonces  step, at most → expired nonces of any key id
 *     webhook_room_*        step, call → is_full: no room for one more; what has expired never counts, it is
 *                           deleted before the answer is yes
 *     webhook_near          step, call → limits that are used to 80 %
 *     webhook_pressure      step, call → the same, after what has expired was deleted
 *     webhook_sweep         sender, at most, offset → number of rows deleted: of each kind, of each key id at most that
 *
 * A cap is exact where its sender is near it: then its accepts run one at a time (`run.ts`). A limit that is null is
 * none.
 */
export const CAPS = `
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
`;
