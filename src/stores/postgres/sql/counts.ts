import { CALLS_CAPS, isNear } from './words.ts';

/**
 * What a sender has used, in the course of a batch: read once a sender and key id, and noted once.
 *
 *     webhook_visit       step, call, whether the sender is another → the step speaks of the call's sender and key id
 *     webhook_count_used  step, call → the counts, with what the batch has changed by then (`changes`), read when the
 *                         first accept needs them; fails with 40001 where a cap came near after the look that chose the
 *                         locks
 *     webhook_leave       step, whether the sender is left → a few expired rows deleted, the differences noted
 *
 * Sweeping: each batch takes one of the four kinds in turn, and more of it than it can have added to all; so a store
 * that is used does not grow.
 */
export const COUNTS: string = `
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
  IF NOT s.sender_id = ANY (s.exact) AND (${isNear({ entries: 's.entries', bytes: 's.pending_bytes', nonces: 's.nonces' }, CALLS_CAPS)}) THEN
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
`;
