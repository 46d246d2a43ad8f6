import { MARK_AHEAD_MS, MARK_RETENTION_MS } from '../../contract.ts';

/** Words that several functions share. */

/** Entries, and bytes, that others may add while a call decides: so near a cap its sender's accepts run one at a time. */
const NEAR_ROWS = 10_000;
const NEAR_BYTES = 64 * 1_048_576;

/** What a sender has used, by the expressions for it; nonces are those of the key id. */
interface Used {
  readonly entries: string;
  readonly bytes: string;
  readonly nonces: string;
}

/** Whether one of the caps is near: null where none is and something is null. */
export const isNear = (used: Used, caps: Used): string =>
  `${used.entries} + ${NEAR_ROWS} >= ${caps.entries} OR ${used.bytes} + ${NEAR_BYTES} >= ${caps.bytes} OR ${used.nonces} + ${NEAR_ROWS} >= ${caps.nonces}`;

/** The caps of a call. */
export const CALLS_CAPS: Used = {
  entries: 'c.max_records',
  bytes: 'c.max_bytes',
  nonces: 'c.max_key_nonces',
};

/** Whether `p_terms` leave so much room that no use is to be reported (at 80 %), whatever others add meanwhile. */
export const hasRoom = ({ entries, bytes, nonces }: Used, allNonces: string): string =>
  `coalesce(${entries}, 0) + ${NEAR_ROWS} < p_terms[4] / 5 * 4 AND coalesce(${bytes}, 0) + ${NEAR_BYTES} < p_terms[5] / 5 * 4 AND coalesce(${nonces}, 0) + ${NEAR_ROWS} < p_terms[6] / 5 * 4 AND (p_keyid IS NULL OR coalesce(${allNonces}, 0) + ${NEAR_ROWS} < p_terms[7] / 5 * 4)`;

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
