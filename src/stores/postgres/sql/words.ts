import { MARK_AHEAD_MS, MARK_RETENTION_MS } from '../../contract.ts';

/** Words that several functions share. */

/** Entries, and bytes, that others may add while a call decides: so near a cap its sender's accepts run one at a time. */
export const NEAR_ROWS = 10_000;
export const NEAR_BYTES: number = 64 * 1_048_576;

/** How long a mark is kept, at least as long as its event. */
export const markLife = (retention: string): string => `greatest(${retention}, ${MARK_RETENTION_MS})`;

/** Whether an instant is too far ahead for a mark. */
export const isAhead = (instant: string, now: string): string =>
  `coalesce(${instant} > ${now} + ${MARK_AHEAD_MS}, false)`;

/** Plans by keys, made once, whatever the statistics say. */
export const PLANS = `SET search_path FROM CURRENT SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off`;

/** `webhook_enter`, for those to whom a call of a function is much; it is called where it has something to do. */
export const ENTER = `IF current_setting('transaction_isolation') <> 'read committed' OR current_setting('synchronous_commit') <> p_sync
    OR set_config('lock_timeout', p_lock_ms::text, true) IS NULL THEN
    PERFORM webhook_enter(p_lock_ms, p_sync);
  END IF;`;
