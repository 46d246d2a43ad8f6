// Decides the next action for a step that is under way, from its update and the URLs of its media buy (told.md §3.2).
// It is pure. The steps of moves call it at each check.
import type { Stored } from '../operation.ts';
import type { Need } from './move-needs.ts';
import type { Move } from './move-row.ts';

/**
 * The decision. `again`: the step is put back, to be begun anew. `ask`: the media buy's revision must be read first.
 */
export type Judged =
  | { readonly kind: 'wait'; readonly move: Move; readonly until: number }
  | { readonly kind: 'again'; readonly move: Move }
  | { readonly kind: 'ask' }
  | { readonly kind: 'done' }
  | { readonly kind: 'refused'; readonly reason: string };

export interface Judging {
  /** The need of the media buy; undefined if the buy is no longer known. */
  readonly need: Need | undefined;
  /** The operation of the update; undefined if there is none, or it has expired. */
  readonly operation:
    Pick<Stored, 'state' | 'status' | 'reason' | 'refusal' | 'keyUntil' | 'withoutConfig'> | undefined;
  /** True if the media buy is terminal. */
  readonly isOver: boolean;
  /** True if the end of the update's task is no longer awaited. */
  readonly isGivenUp: boolean;
  readonly now: number;
}

/** The first wait until a step is checked again. It doubles each time that nothing has changed. Ms. */
const FIRST_LOOK_MS = 5_000;
const LONGEST_LOOK_MS = 600_000;
/** The number of updates that may end without moving the media buy, before the step is refused. */
const MOST_TRIES = 10;
const MOST_CONFLICTS = 10;
/**
 * The wait before the revision is read after a second `CONFLICT`. It doubles with each further one, because another
 * change may still hold the media buy. Ms.
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

/** Returns the decision if the update is over, but the media buy is not at its target. */
function over(move: Move, operation: Update, now: number): Judged {
  const { state, refusal } = operation;
  if (state === 'open') return { kind: 'refused', reason: 'the task of its update has not ended' };
  if (state === 'ended') return ended(move, operation);
  if (refusal === 'CONFLICT') return conflicted(move, operation, now);
  return state === 'refused' ? refused(operation) : orphaned(move, operation, now);
}

type Update = NonNullable<Judging['operation']>;

/** Returns the decision about an update whose revision is out of date. */
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
 * Returns the decision about an update that may have been done, or may still be. An update with another request key has
 * to wait until the first key has expired.
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

/** Begins a step again, under another request key. */
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
