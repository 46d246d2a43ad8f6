/**
 * The transaction of a batch of calls: any number of deliveries and settlements share one round trip and one commit.
 *
 *     webhook_run(calls, bodies, offset, turn, lock ms, sync) → a row for each call, in their order: the answer as JSON
 *       text, and the body where the answer has one. The calls come sorted by sender and key id; `turn` chooses what
 *       is swept, `sync` is the least synchronous_commit
 *
 * Why it is atomic. Everything that a call decides by is guarded by locks that are held until the commit has been
 * flushed, and each statement of a function sees what was committed before it (READ COMMITTED; anything else is
 * refused). Locks are taken in one order, so that batches do not block each other in a circle:
 *   1. new senders and key ids (rows), sorted;
 *   2. the senders of accepts: shared; exclusive where a cap is near, for only then a count must be exact;
 *   3. keys, nonces and notification ids, sorted: transaction-level advisory locks on 128 numbers in their place, so that
 *      a batch of any size takes few of the server's lock slots;
 *   4. tasks, sorted, on 4096 numbers: workers only try for them, and must seldom try in vain;
 *   5. rows. Those of a record may be locked by a worker, which waits for nothing while it has them; others are written by
 *      those who hold the numbers, or deleted by a sweep, which passes over what is locked;
 *   6. counts, sorted, after everything else.
 * Nothing outlives the transaction, so any pooler will do.
 *
 * Barrier. The last statement writes (but where all answers are a peek's "not yet"), and so the commit waits for the
 * log of whatever the answers rest on, a first copy that another connection wrote included.
 */
export const RUN = `
CREATE FUNCTION webhook_run(p_calls jsonb, p_bodies bytea, p_offset bigint, p_turn integer, p_lock_ms integer,
  p_sync text) RETURNS TABLE (answer text, body bytea)
LANGUAGE plpgsql
SET search_path FROM CURRENT SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  v_calls webhook_call[] := ARRAY(SELECT x FROM jsonb_populate_recordset(NULL::webhook_call, p_calls) x);
  v_barrier boolean := false;
  c webhook_call;
  p webhook_call;
  s webhook_step;
BEGIN
  PERFORM webhook_enter(p_lock_ms, p_sync);
  s.changes := '{}';
  IF cardinality(v_calls) = 1 THEN
    c := v_calls[1];
    IF length(c.nonce) > 512 OR length(c.keyid) > 512 THEN
      v_calls := webhook_fit(v_calls);
      c := v_calls[1];
    END IF;
    s := webhook_lock_lone(s, c);
  ELSIF EXISTS (SELECT FROM unnest(v_calls) x WHERE length(x.nonce) > 512 OR length(x.keyid) > 512) THEN
    v_calls := webhook_fit(v_calls);
  END IF;
  IF s.exact IS NULL THEN
    PERFORM webhook_register(v_calls);
    s := webhook_lock(s, v_calls);
  END IF;
  s.at := webhook_now(p_offset);
  s.turn := p_turn;
  s.most := 16 + 4 * cardinality(v_calls);
  FOREACH c IN ARRAY v_calls LOOP
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
`;
