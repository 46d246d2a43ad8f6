import { hasRoom, isAhead, markLife } from './words.ts';

/**
 * Fresh events, many at a time: rule 5 of `Store.accept` for calls of which nothing is known, by one statement over all
 * of them for each table. The rest goes row by row (`decide.ts`).
 *
 *     webhook_fresh       one call, from its place in the columns of parameters (`fresh.ts` of the client)
 *     webhook_register_names  senders, key ids → new ones have their rows
 *     webhook_has_room    sender, key id, terms → far from every cap
 *     webhook_admissible  step, mode, calls → those that rules 1 to 4 say nothing against, with what rule 5 wants to know
 *     webhook_admit       step, terms, calls → inserted; entries and counts noted in the step
 *
 * Why it is the same as row by row. Their senders are locked (shared: no cap is near, else none is admissible), so are
 * their tasks (alone) and the numbers of their keys, nonces and notification ids (shared: `run.ts`). So nobody who
 * decides row by row is at work on any of them, and each look sees all that such a one has committed:
 *   - rule 1 needs a nonce that is known or a cap that is reached, rules 2 to 4 a record, a mark, or a cap: no row and no
 *     cap near, no such rule. Rows that have expired are rows here: who may replace them goes row by row;
 *   - a task's row is looked at and written under the task's own lock, so its mark and holder are as they were seen;
 *   - of two who insert the same key, nonce or notification id at once under shared locks, the unique index lets one
 *     through; the other one waits for its commit and fails with 23505: the batch is rolled back and made again
 *     (`faults.ts`), and now that row is seen. All insert in one order of tables and, in each, of keys, so that they do not
 *     wait in a circle. A client never puts two calls with a key, nonce, task or notification id in common among one
 *     batch's fresh ones (`fresh.ts` of the client).
 * What is not admissible has changed nothing and is said to be so ("again"): the same call follows row by row.
 */
export const FRESH: string = `
CREATE TYPE webhook_fresh AS (
  place integer, sender_id integer, keyid_id integer,
  key text COLLATE "C", caller text COLLATE "C", nonce text COLLATE "C", nonce_ms bigint,
  body_at integer, body_bytes integer, raw_hash bytea, canonical_hash bytea,
  task_id text COLLATE "C", instant text COLLATE "C", instant_ms bigint, terminal boolean,
  notification_id text COLLATE "C", task_known boolean, after_terminal boolean
);
CREATE FUNCTION webhook_register_names(p_senders text[], p_keyids text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO webhook_sender (url) SELECT DISTINCT u COLLATE "C" FROM unnest(p_senders) u ORDER BY 1
    ON CONFLICT DO NOTHING;
  INSERT INTO webhook_keyid (sender_id, keyid)
    SELECT DISTINCT w.id, g.keyid COLLATE "C" FROM unnest(p_senders, p_keyids) g (url, keyid)
    JOIN webhook_sender w ON w.url = g.url COLLATE "C" WHERE g.keyid IS NOT NULL ORDER BY 1, 2 ON CONFLICT DO NOTHING;
END $$;
CREATE FUNCTION webhook_has_room(p_sender integer, p_keyid integer, p_terms bigint[]) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  v_entries float8;
  v_bytes float8;
  v_nonces float8;
  v_all float8;
BEGIN
  -- Sums of bigint are numeric, which costs more than all the rest.
  SELECT sum(entries::float8), sum(pending_bytes::float8), sum(nonces::float8) FILTER (WHERE keyid_id = p_keyid),
    sum(nonces::float8) FILTER (WHERE sender_id = 0)
    INTO v_entries, v_bytes, v_nonces, v_all FROM webhook_count WHERE sender_id IN (0, p_sender);
  RETURN ${hasRoom({ entries: 'v_entries', bytes: 'v_bytes', nonces: 'v_nonces' }, 'v_all')};
END $$;
CREATE FUNCTION webhook_admissible(s webhook_step, p_inbox boolean, p_fresh webhook_fresh[])
RETURNS webhook_fresh[] LANGUAGE plpgsql AS $$
BEGIN
  -- OFFSET 0, and looks of their own: by the whole key for each call, whatever size planners take the tables for.
  RETURN ARRAY(
    SELECT ROW(f.place, f.sender_id, f.keyid_id, f.key, f.caller, f.nonce, f.nonce_ms, f.body_at, f.body_bytes,
      f.raw_hash, f.canonical_hash, f.task_id, f.instant, f.instant_ms, f.terminal, f.notification_id,
      t.task_id IS NOT NULL, coalesce(NOT p_inbox AND t.mark_terminal AND f.instant > t.mark, false))::webhook_fresh
    FROM unnest(p_fresh) f
    LEFT JOIN LATERAL (SELECT * FROM webhook_task k
      WHERE k.sender_id = f.sender_id AND k.task_id = f.task_id OFFSET 0) t ON true
    WHERE (SELECT true FROM webhook_record r WHERE r.sender_id = f.sender_id AND r.key = f.key) IS NULL
      AND (f.nonce IS NULL
        OR (SELECT true FROM webhook_nonce n WHERE n.keyid_id = f.keyid_id AND n.nonce = f.nonce) IS NULL)
      AND (f.notification_id IS NULL OR (SELECT true FROM webhook_notification n
        WHERE n.sender_id = f.sender_id AND n.notification_id = f.notification_id) IS NULL)
      AND (t.task_id IS NULL OR (t.expires_at > s.at
        AND NOT webhook_stale(f.instant, f.terminal, t.mark, t.mark_terminal)
        AND (t.holder IS NULL OR (SELECT true FROM webhook_record h
          WHERE h.sender_id = t.sender_id AND h.key = t.holder AND h.task_id = t.task_id
            AND h.state = 'leased' AND h.lease_until > s.at) IS NULL))));
END $$;
CREATE FUNCTION webhook_admit(s webhook_step, p_terms bigint[], p_fresh webhook_fresh[], p_bodies bytea)
RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_inbox boolean := p_terms[1] = 1;
  v_tasks_until bigint := s.at + ${markLife('p_terms[3]')};
  v_state text := CASE WHEN v_inbox THEN 'queued' ELSE 'leased' END;
  v_claim text := CASE WHEN v_inbox THEN 'queued' ELSE 'won' END;
  v_fence integer := CASE WHEN v_inbox THEN 0 ELSE 1 END;
  v_lease_until bigint := CASE WHEN v_inbox THEN 0 ELSE s.at + p_terms[2] END;
  v_expires_at bigint := CASE WHEN NOT v_inbox THEN s.at + greatest(p_terms[3], p_terms[2]) END;
  v_nonces bigint;
  v_notifications bigint;
  v_new bigint;
  v_old bigint;
  v_held bigint;
BEGIN
  s.changes := s.changes || ARRAY(SELECT ROW(f.sender_id, coalesce(f.keyid_id, 0),
      count(*) + count(f.notification_id) + count(f.task_id) - count(*) FILTER (WHERE f.task_known),
      sum(f.body_bytes), count(f.nonce))::webhook_change
    FROM unnest(p_fresh) f GROUP BY f.sender_id, f.keyid_id);
  SELECT count(nonce), count(notification_id), count(*) FILTER (WHERE NOT task_known AND task_id IS NOT NULL),
    count(*) FILTER (WHERE task_known)
    INTO v_nonces, v_notifications, v_new, v_old FROM unnest(p_fresh);
  INSERT INTO webhook_record (sender_id, key, state, claim, claimed_by, owner, fence, lease_until, attempts, crashes,
    acked, inserted_at, not_before, parked_until, raw_hash, canonical_hash, task_id, instant, instant_ms, terminal,
    reemission, after_terminal, after_final, ahead, body_bytes, expires_at, body)
  SELECT f.sender_id, f.key, v_state, v_claim, f.caller, CASE WHEN NOT v_inbox THEN f.caller END, v_fence,
    v_lease_until, v_fence, 0, v_inbox, s.at, s.at, 0, f.raw_hash, f.canonical_hash, f.task_id, f.instant,
    f.instant_ms, coalesce(f.terminal, false), false, f.after_terminal, false,
    ${isAhead('f.instant_ms', 's.at')}, f.body_bytes, v_expires_at,
    substring(p_bodies FROM f.body_at + 1 FOR f.body_bytes)
  FROM unnest(p_fresh) f ORDER BY f.sender_id, f.key;
  IF v_nonces > 0 THEN
    INSERT INTO webhook_nonce (keyid_id, nonce, record_key, accept_id, expires_at)
      SELECT f.keyid_id, f.nonce, f.key, f.caller, s.at + f.nonce_ms FROM unnest(p_fresh) f
      WHERE f.nonce IS NOT NULL ORDER BY f.keyid_id, f.nonce;
  END IF;
  IF v_notifications > 0 THEN
    INSERT INTO webhook_notification (sender_id, notification_id, record_key, expires_at)
      SELECT f.sender_id, f.notification_id, f.key, v_tasks_until FROM unnest(p_fresh) f
      WHERE f.notification_id IS NOT NULL ORDER BY f.sender_id, f.notification_id;
  END IF;
  IF v_new > 0 THEN
    INSERT INTO webhook_task (sender_id, task_id, holder, mark, mark_terminal, expires_at)
      SELECT f.sender_id, f.task_id, CASE WHEN NOT v_inbox THEN f.key END, NULL, false, v_tasks_until
      FROM unnest(p_fresh) f WHERE f.task_id IS NOT NULL AND NOT f.task_known;
  END IF;
  IF v_old > 0 THEN
    UPDATE webhook_task t SET holder = CASE WHEN v_inbox THEN t.holder ELSE f.key END, expires_at = v_tasks_until
      FROM unnest(p_fresh) f WHERE f.task_known AND t.sender_id = f.sender_id AND t.task_id = f.task_id;
    GET DIAGNOSTICS v_held = ROW_COUNT;
    -- It expired a moment ago, and a sweep was faster: made again, the call finds none.
    IF v_held < v_old THEN RAISE EXCEPTION 'a task was swept' USING ERRCODE = '40001'; END IF;
  END IF;
  IF v_nonces > 0 THEN s.changes := s.changes || ROW(0, 0, 0, 0, v_nonces)::webhook_change; END IF;
  RETURN s;
END $$;
`;
