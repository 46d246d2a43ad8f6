/**
 * The completion inside the owner's transaction (`ctx.transaction`).
 *
 *     webhook_started  → when this transaction began, µs: another one has another
 *     webhook_holds    call, offset → that, where its caller holds the lease; else null. Nothing is locked: the lease is
 *                      renewed while the owner's function runs, and its compare-and-set at the end decides
 *     webhook_finish   call, offset, started, lock ms, sync → the completion. Fails with PW003 where the lease is lost,
 *                      PW004 where the owner's function ended the transaction. Sent together with COMMIT: a process that
 *                      is paused between the two would keep other deliveries waiting for its locks
 */
export const FINISH = `
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
`;
