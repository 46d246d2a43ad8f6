import { PLANS } from './words.ts';
import { DUE_AT, IS_DUE } from './tables.ts';

/**
 * Workers and lists.
 *
 *     webhook_lease(call, offset, look, most, lock ms, sync) → rows of JSON and body: {"kind": "event", …} for each
 *       event leased to the call's caller, {"kind": "died", …} for each that is DEAD now, and last
 *       {"kind": "end", "found", "moved", "ended", "nextDue"}: candidates looked at, those that are due no more, those that ended
 *     webhook_list(query, offset) → JSON of each record in the state, oldest first, without bodies
 *     webhook_inspect(call, offset) → one of them with its body
 *
 * Why it is atomic. Candidates are locked along the index of what is due, earliest first, and those that somebody has
 * locked are passed over (FOR UPDATE SKIP LOCKED), so that workers neither wait for each other nor get the same event; a
 * task's number (`run.ts`) and what waits for a task are only tried for. So a worker waits for nobody while it holds what
 * others wait for. Each candidate leaves the due ones, but where somebody is busy with its task: leased, ended, parked
 * until its task is free, or for a moment; so that no sender can keep workers busy with events that cannot run.
 */
export const INBOX: string = `
CREATE FUNCTION webhook_lease(p_call jsonb, p_offset bigint, p_look integer, p_most integer, p_lock_ms integer,
  p_sync text) RETURNS TABLE (answer text, body bytea)
LANGUAGE plpgsql
${PLANS} AS $$
DECLARE
  c webhook_call := jsonb_populate_record(NULL::webhook_call, p_call);
  v_heads webhook_head[];
  v_class integer := webhook_class('task');
  v_looked integer := 0;
  v_freed boolean;
  v_moved integer := 0;
  v_given integer := 0;
  v_ended integer := 0;
  r webhook_head;
  s webhook_step;
BEGIN
  PERFORM webhook_enter(p_lock_ms, p_sync);
  s.at := webhook_now(p_offset);
  s.changes := '{}';
  LOOP
    v_freed := false;
    v_heads := ARRAY(SELECT h FROM (SELECT * FROM webhook_head
      WHERE ${IS_DUE} AND ${DUE_AT} <= s.at ORDER BY ${DUE_AT}, seq LIMIT p_look - v_looked FOR UPDATE SKIP LOCKED) h);
    FOREACH r IN ARRAY v_heads LOOP
      EXIT WHEN v_given >= p_most;
      v_looked := v_looked + 1;
      -- Somebody is busy with the task: the record stays due. Waiting, with rows locked, might be waiting for each other.
      s.tasks := ARRAY(SELECT webhook_bucket(r.sender_id, r.task_id, 65536) WHERE r.task_id IS NOT NULL);
      CONTINUE WHEN r.task_id IS NOT NULL AND NOT pg_try_advisory_xact_lock(v_class, s.tasks[1]);
      s.sender_id := r.sender_id;
      s.entries := 0; s.pending_bytes := 0;
      s := webhook_claim(s, c, r);
      v_moved := v_moved + 1;
      IF s.kind = 'later' THEN
        UPDATE webhook_record SET parked_until = s.at + 200 WHERE sender_id = r.sender_id AND key = r.key;
        CONTINUE;
      END IF;
      IF s.kind IN ('died', 'stale') THEN v_ended := v_ended + 1; END IF;
      IF s.kind = 'busy' THEN
        UPDATE webhook_record SET parked_until = s.parked_until WHERE sender_id = r.sender_id AND key = r.key;
      ELSIF s.kind <> 'stale' THEN
        SELECT jsonb_build_object('sender', w.url, 'key', r.key, 'kind',
          CASE s.kind WHEN 'won' THEN 'event' ELSE 'died' END) || coalesce(s.more, '{}')
          INTO answer FROM webhook_sender w WHERE w.id = r.sender_id;
        body := NULL;
        IF s.kind = 'won' THEN
          v_given := v_given + 1;
          SELECT b.body INTO body FROM webhook_record b WHERE b.sender_id = r.sender_id AND b.key = r.key;
        END IF;
        RETURN NEXT;
      END IF;
      s.more := NULL;
      s := webhook_add(s, 0, s.entries, s.pending_bytes, 0);
      -- One that ended has freed its task: what waited for it may be due before the rest.
      v_freed := r.task_id IS NOT NULL AND s.kind IN ('died', 'stale');
      EXIT WHEN v_freed;
    END LOOP;
    EXIT WHEN NOT v_freed;
  END LOOP;
  PERFORM webhook_flush(s);
  body := NULL;
  SELECT jsonb_build_object('kind', 'end', 'found', v_looked, 'moved', v_moved, 'ended', v_ended, 'nextDue',
    (SELECT greatest(${DUE_AT} - s.at, 0) FROM webhook_record WHERE ${IS_DUE} ORDER BY ${DUE_AT} LIMIT 1))
    INTO answer;
  RETURN NEXT;
END $$;
CREATE FUNCTION webhook_seen(p_url text, r webhook_head) RETURNS jsonb LANGUAGE sql AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object('sender', p_url, 'key', r.key, 'state', r.state, 'acked', r.acked,
    'attempts', r.attempts, 'crashes', r.crashes, 'insertedAt', r.inserted_at, 'notBefore', r.not_before,
    'leaseUntil', r.lease_until, 'taskId', r.task_id, 'lastError', r.last_error,
    'bodyBytes', CASE WHEN r.state IN ('applied', 'stale') THEN 0 ELSE r.body_bytes END, 'seq', r.seq))
$$;
CREATE FUNCTION webhook_list(p_query jsonb, p_offset bigint) RETURNS TABLE (answer text, body bytea)
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  RETURN QUERY SELECT webhook_seen(w.url, r)::text, NULL::bytea
    FROM webhook_head r JOIN webhook_sender w ON w.id = r.sender_id
    WHERE r.state IN ('queued', 'leased', 'dead') AND r.state = p_query ->> 'state'
      AND r.seq > (p_query ->> 'after')::bigint
      AND (p_query ->> 'sender' IS NULL OR w.url = p_query ->> 'sender')
      AND (r.expires_at IS NULL OR r.expires_at > webhook_now(p_offset))
    ORDER BY r.seq LIMIT (p_query ->> 'limit')::integer;
END $$;
CREATE FUNCTION webhook_inspect(p_call jsonb, p_offset bigint) RETURNS TABLE (answer text, body bytea)
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_seqscan = off AS $$
BEGIN
  RETURN QUERY SELECT webhook_seen(w.url, r)::text, b.body
    FROM webhook_sender w JOIN webhook_head r ON r.sender_id = w.id
    JOIN webhook_record b ON b.sender_id = r.sender_id AND b.key = r.key
    WHERE w.url = p_call ->> 'sender' AND r.key = p_call ->> 'key'
      AND (r.expires_at IS NULL OR r.expires_at > webhook_now(p_offset));
END $$;
`;
