import { PLANS, isAhead } from './words.ts';

/**
 * The transaction of a batch of calls: any number of deliveries and settlements share one round trip and one commit.
 *
 *     webhook_run        calls, bodies, offset, turn, most, lock ms, sync → a row for each call, in their order: the
 *                        answer as JSON text, and the body where the answer has one. The calls come sorted by sender and
 *                        key id; `turn` and `most` choose what is swept (-1: nothing), `sync` is the least
 *                        synchronous_commit
 *     webhook_run_sets   the same, and fresh calls (`fresh.ts`) and completions (`ends.ts`) in columns → first a row for
 *                        all fresh ones that were admitted, bits (1 after terminal, 2 ahead) and place of each, and the
 *                        places of all that are complete now; then the others' rows
 *     webhook_each       step, calls, bodies → the calls row by row, and what was noted flushed
 *
 * Why it is atomic. Everything that a call decides by is guarded by locks that are held until the commit has been
 * flushed, and each statement of a function sees what was committed before it (READ COMMITTED; anything else is
 * refused). Locks are taken in one order, so that batches do not block each other in a circle:
 *   1. new senders and key ids (rows), sorted;
 *   2. the senders of accepts: shared; exclusive where a cap is near, for only then a count must be exact;
 *   3. keys, nonces and notification ids of accepts (shared by fresh ones), sorted: transaction-level advisory locks on
 *      128 numbers in their place, so that a batch of any size takes few of the server's lock slots;
 *   4. guards of records that are there, and tasks of accepts, sorted, on 65536 numbers: workers only try for them, and
 *      must seldom try in vain. A record's guard is its task's number, or its key's where it has none;
 *   5. rows. Those of a record may be locked by a worker, which waits for nothing while it has them; others are written by
 *      those who hold the numbers, or deleted by a sweep, which passes over what is locked;
 *   6. counts, sorted, after everything else.
 * Nothing outlives the transaction, so any pooler will do.
 *
 * Barrier. The last statement writes (but where all answers are a peek's "not yet"), and so the commit waits for the
 * log of whatever the answers rest on, a first copy that another connection wrote included.
 */
export const RUN: string = `
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
${PLANS} AS $$
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
${PLANS} AS $$
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
  answer := concat((SELECT string_agg(chr(48 + f.after_terminal::integer + 2 * ${isAhead('f.instant_ms', 's.at')}::integer)
    || f.place, ' ') FROM unnest(v_fresh) f), ';', array_to_string(s.ended, ' '));
  RETURN NEXT;
  IF cardinality(v_calls) > 0 THEN
    RETURN QUERY SELECT * FROM webhook_each(s, v_calls, p_bodies);
  ELSIF cardinality(s.changes) > 0 THEN
    PERFORM webhook_flush(s);
  END IF;
END $$;
`;
