import { ENTER, PLANS, markLife } from './words.ts';

/**
 * Completions, many at a time or one alone: `webhook_complete` (`settle.ts`) by one statement for each table.
 *
 *     webhook_guard     sender, key, task → the number that guards a record: its task's, or its key's where it has none
 *     webhook_end_all   step, sender ids, keys, owners, retentions → `ended`: the places of those that are complete now;
 *                       what changed in the counts noted in the step
 *     webhook_run_done  sender, key, owner, retention, offset, lock ms, sync → "1"; null: nothing done
 *
 * Why it is the same as row by row. Whoever waits for a record's row has locked its guard alone (`run.ts`), so the rows
 * of one batch may be waited for in any order; and under the task's own lock its mark and what waits for it are as they
 * are seen. What is not complete here has changed nothing: the same call follows row by row, and is told why.
 */
export const ENDS: string = `
CREATE TYPE webhook_ended AS (
  place integer, sender_id integer, task_id text COLLATE "C", instant text COLLATE "C", terminal boolean,
  body_bytes integer, retention bigint
);
CREATE FUNCTION webhook_guard(p_sender integer, p_key text, p_task text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT webhook_bucket(p_sender, coalesce(p_task, chr(1) || p_key), 65536)
$$;
CREATE FUNCTION webhook_end_all(s webhook_step, p_senders integer[], p_keys text[], p_owners text[],
  p_retentions bigint[]) RETURNS webhook_step LANGUAGE plpgsql AS $$
DECLARE
  v_ended webhook_ended[];
  v_marks bigint;
  v_marked bigint;
  v_guarded boolean;
  v record;
BEGIN
  WITH ended AS (
    UPDATE webhook_record r SET state = 'applied', acked = true, body = NULL, expires_at = s.at + f.retention
      FROM unnest(p_senders, p_keys, p_owners, p_retentions) WITH ORDINALITY f (sender, key, owner, retention, place)
      WHERE r.sender_id = f.sender AND r.key = f.key COLLATE "C" AND r.owner = f.owner COLLATE "C"
        AND r.state || '' = 'leased' AND r.lease_until > s.at AND (r.expires_at > s.at) IS NOT FALSE
      RETURNING f.place, r.sender_id, r.key, r.task_id, r.instant, r.terminal, r.ahead, r.body_bytes, f.retention)
  SELECT array_agg(ROW(place, sender_id, task_id, CASE WHEN NOT ahead THEN instant END, terminal, body_bytes,
      retention)::webhook_ended), array_agg(place),
    count(DISTINCT (sender_id, task_id)) FILTER (WHERE task_id IS NOT NULL AND instant IS NOT NULL AND NOT ahead),
    bool_and(webhook_guard(sender_id, key, task_id) = ANY (s.tasks))
    INTO v_ended, s.ended, v_marks, v_guarded FROM ended;
  IF v_ended IS NULL THEN RETURN s; END IF;
  IF NOT v_guarded THEN
    RAISE EXCEPTION 'the record changed before it was locked' USING ERRCODE = '40001';
  END IF;
  s.changes := s.changes || ARRAY(SELECT ROW(sender_id, 0, 0, -sum(body_bytes), 0)::webhook_change
    FROM unnest(v_ended) GROUP BY sender_id);
  IF v_marks > 0 THEN
    -- Never back: a store's clock that was set back can make a lost lease look live.
    UPDATE webhook_task t SET mark = d.instant, mark_terminal = d.terminal,
      expires_at = s.at + ${markLife('d.retention')}, holder = CASE WHEN t.expires_at > s.at THEN t.holder END
      FROM (SELECT DISTINCT ON (sender_id, task_id) * FROM unnest(v_ended)
        WHERE task_id IS NOT NULL AND instant IS NOT NULL ORDER BY sender_id, task_id, instant DESC) d
      WHERE t.sender_id = d.sender_id AND t.task_id = d.task_id
        AND ((t.expires_at <= s.at) IS TRUE OR (t.mark <= d.instant) IS NOT FALSE);
    GET DIAGNOSTICS v_marked = ROW_COUNT;
    IF v_marked < v_marks THEN
      -- Swept meanwhile, or it has a newer mark.
      FOR v IN
        INSERT INTO webhook_task (sender_id, task_id, holder, mark, mark_terminal, expires_at)
          SELECT DISTINCT ON (sender_id, task_id) sender_id, task_id, NULL, instant, terminal,
            s.at + ${markLife('retention')}
          FROM unnest(v_ended) WHERE task_id IS NOT NULL AND instant IS NOT NULL
          ORDER BY sender_id, task_id, instant DESC
          ON CONFLICT DO NOTHING RETURNING sender_id
      LOOP
        s.changes := s.changes || ROW(v.sender_id, 0, 1, 0, 0)::webhook_change;
      END LOOP;
    END IF;
  END IF;
  UPDATE webhook_record r SET parked_until = 0 FROM unnest(v_ended) d CROSS JOIN LATERAL (
      SELECT p.key FROM webhook_record p WHERE p.sender_id = d.sender_id AND p.task_id = d.task_id
        AND p.parked_until > 0 ORDER BY p.seq LIMIT 1) w
    WHERE r.sender_id = d.sender_id AND r.key = w.key AND r.parked_until > 0;
  RETURN s;
END $$;
CREATE FUNCTION webhook_run_done(p_sender text, p_key text, p_owner text, p_retention bigint, p_offset bigint,
  p_lock_ms integer, p_sync text) RETURNS text LANGUAGE plpgsql
${PLANS} AS $$
DECLARE
  b record;
  r record;
  v_at bigint;
BEGIN
  ${ENTER}
  SELECT w.id AS sender_id, h.task_id, webhook_guard(w.id, p_key, h.task_id) AS guard INTO b
    FROM webhook_sender w CROSS JOIN LATERAL (SELECT task_id FROM webhook_record
      WHERE sender_id = w.id AND key = p_key COLLATE "C" OFFSET 0) h WHERE w.url = p_sender COLLATE "C";
  IF pg_advisory_xact_lock(webhook_class('task'), b.guard)::text IS NULL THEN RETURN NULL; END IF;
  v_at := webhook_now(p_offset);
  UPDATE webhook_record SET state = 'applied', acked = true, body = NULL, expires_at = v_at + p_retention
    WHERE sender_id = b.sender_id AND key = p_key COLLATE "C" AND owner = p_owner COLLATE "C"
      AND state || '' = 'leased' AND lease_until > v_at AND (expires_at > v_at) IS NOT FALSE
    RETURNING task_id, CASE WHEN NOT ahead THEN instant END AS mark, terminal, body_bytes, 0 AS entries INTO r;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF r.task_id IS NOT NULL THEN
    IF r.task_id IS DISTINCT FROM b.task_id THEN
      RAISE EXCEPTION 'the record changed before it was locked' USING ERRCODE = '40001';
    END IF;
    IF r.mark IS NOT NULL THEN
      UPDATE webhook_task SET mark = r.mark, mark_terminal = r.terminal,
        expires_at = v_at + ${markLife('p_retention')}, holder = CASE WHEN expires_at > v_at THEN holder END
        WHERE sender_id = b.sender_id AND task_id = r.task_id
          AND ((expires_at <= v_at) IS TRUE OR (mark <= r.mark) IS NOT FALSE);
      IF NOT FOUND THEN
        INSERT INTO webhook_task (sender_id, task_id, holder, mark, mark_terminal, expires_at)
          VALUES (b.sender_id, r.task_id, NULL, r.mark, r.terminal, v_at + ${markLife('p_retention')})
          ON CONFLICT DO NOTHING;
        IF FOUND THEN r.entries := 1; END IF;
      END IF;
    END IF;
    PERFORM webhook_free_task(b.sender_id, r.task_id);
  END IF;
  INSERT INTO webhook_count AS c (sender_id, keyid_id, stripe, entries, pending_bytes, nonces)
    VALUES (b.sender_id, 0, pg_backend_pid() % 16, r.entries, -r.body_bytes, 0)
    ON CONFLICT (sender_id, keyid_id, stripe) DO UPDATE SET entries = c.entries + excluded.entries,
      pending_bytes = c.pending_bytes + excluded.pending_bytes;
  RETURN '1';
END $$;
`;
