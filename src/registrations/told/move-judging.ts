// Decides the next action for a media buy that is moved to another webhook URL (told.md §3.2). The decision depends on
// the running update and on the URLs of the media buy. Pure functions, called at each check of a move.
import type { Stored } from '../operation.ts';
import type { Need } from './move-needs.ts';
import type { Move } from './move-row.ts';

/**
 * The decision about a move. `wait`: check again at `until`. `again`: begin another update. `ask`: first read the media
 * buy's revision. `done`: nothing is left to do.
 */
export type Judged =
  | { readonly kind: 'wait'; readonly move: Move; readonly until: number }
  | { readonly kind: 'again'; readonly move: Move }
  | { readonly kind: 'ask' }
  | { readonly kind: 'done' }
  | { readonly kind: 'refused'; readonly reason: string };

export interface Judging {
  /**
   * The update that the media buy still needs to reach the move's target; undefined if the media buy is no longer
   * known.
   */
  readonly need: Need | undefined;
  /** The operation (stored call) of the latest update; undefined if none was begun, or if its row has expired. */
  readonly operation:
    Pick<Stored, 'state' | 'status' | 'reason' | 'refusal' | 'keyUntil' | 'withoutConfig'> | undefined;
  /** True if the media buy has ended (its status is terminal). */
  readonly isOver: boolean;
  /** True if the update's task has run for too long, so that its end is no longer awaited. */
  readonly isGivenUp: boolean;
  readonly now: number;
}

/** The wait before the first check of a running move. It doubles with each check that finds nothing new. Ms. */
const FIRST_LOOK_MS = 5_000;
const LONGEST_LOOK_MS = 600_000;
/** The number of updates that may end without moving the media buy, before the move counts as refused. */
const MOST_TRIES = 10;
const MOST_CONFLICTS = 10;
/**
 * The wait before the media buy's revision is read after a second `CONFLICT` answer. It doubles with each further one,
 * because another change may still be in progress. Ms.
 */
const CONFLICT_MS = 1000;

const DONE: Judged = { kind: 'done' };

export function judged(move: Move, judging: Judging): Judged {
  const { need, operation, now } = judging;
  if (operation && isAwaited(operation, judging)) return waits(move, now);
  if (need === undefined || need.kind === 'nothing') return DONE;
  return operation ? over(move, operation, now) : again(move);
}

const isAwaited = ({ state }: Update, { isOver, isGivenUp }: Judging): boolean =>
  state === 'calling' || (state === 'open' && !isOver && !isGivenUp);

/** Returns the decision if the media buy still needs an update, and the latest update is no longer awaited. */
function over(move: Move, operation: Update, now: number): Judged {
  const { state, refusal } = operation;
  if (state === 'open') return { kind: 'refused', reason: 'the task of its update has not ended' };
  if (state === 'ended') return ended(move, operation);
  if (refusal === 'CONFLICT') return conflicted(move, operation, now);
  return state === 'refused' ? refused(operation) : orphaned(move, operation, now);
}

type Update = NonNullable<Judging['operation']>;

/** Returns the decision after an update that the seller refused as `CONFLICT`, because its revision was out of date. */
function conflicted(move: Move, { reason = '' }: Update, now: number): Judged {
  const { conflicts } = move;
  if (conflicts >= MOST_CONFLICTS) {
    return { kind: 'refused', reason: `${conflicts + 1} updates were answered CONFLICT. ${reason}` };
  }
  const asksAt = move.asksAt ?? now + (conflicts === 0 ? 0 : CONFLICT_MS * 2 ** (conflicts - 1));
  return asksAt <= now ? { kind: 'ask' } : { kind: 'wait', move: { ...move, asksAt }, until: asksAt };
}

const refused = ({ reason, refusal, state }: Update): Judged => ({
  kind: 'refused',
  reason: reason ?? refusal ?? state,
});

/**
 * Returns the decision about an update whose outcome is unknown. Another update needs a new `idempotency_key`, so it
 * waits until the first key has expired.
 */
function orphaned(move: Move, { reason, refusal, keyUntil }: Update, now: number): Judged {
  const isOver = keyUntil <= now || refusal === 'IDEMPOTENCY_EXPIRED';
  if (isOver) return again({ ...move, tries: 0 });
  const why = `it is unknown whether the update was done${reason === undefined ? '' : ` (${reason})`}`;
  return waits({ ...move, reason: `${why}: it is sent again once its key is over` }, now, keyUntil);
}

function ended(move: Move, { status, reason, withoutConfig }: Update): Judged {
  if (status !== 'completed') {
    return {
      kind: 'refused',
      reason: `the update has ended as ${status}${reason === undefined ? '' : `: ${reason}`}`,
    };
  }
  if (withoutConfig) {
    return {
      kind: 'refused',
      reason:
        'the seller takes no push_notification_config in an update: what it sends by that stays where it was',
    };
  }
  return again(move);
}

/** Decides to begin another update, with a new `idempotency_key`, or to refuse the move after `MOST_TRIES` updates. */
function again({ operationId: _over, reason: _before, ...move }: Move): Judged {
  if (move.tries < MOST_TRIES) return { kind: 'again', move: { ...move, looks: 0 } };
  return {
    kind: 'refused',
    reason: `${move.tries} updates were done, and the media buy is not where it is to go`,
  };
}

function waits(move: Move, now: number, latest = Infinity): Judged {
  const ms = Math.min(FIRST_LOOK_MS * 2 ** Math.min(move.looks, 10), LONGEST_LOOK_MS);
  return {
    kind: 'wait',
    move: { ...move, looks: move.looks + 1 },
    until: Math.min(now + ms, Math.max(latest, now + 1)),
  };
}
