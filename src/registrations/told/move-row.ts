// Defines the stored rows of moves, i.e. of changes of webhook URLs (told.md §3.2, §3.3). There is one for each media
// buy that is to be moved, and one for each seller. `apply` writes them, and move-loop.ts works on them. A seller's row
// is due when the next move may begin. A media buy's row is due only while its move runs.
import type { RegistrationRow, RegistrationRows } from '../../stores/store.ts';
import { storedObject } from '../operation-rows.ts';
import type { RouteScheme } from '../seller.ts';
import { pauseOf, sellerRowIn } from '../watch-task.ts';
import { hasFormers, ownRoutesIn, untilTold } from './own-routes.ts';

/** The target of a move: the base URL and the scheme that the webhooks should have. */
export interface MoveTarget {
  /** The base URL. Absent: each URL keeps its base. */
  readonly base?: string;
  /** The authentication scheme. Absent: each channel keeps its scheme. */
  readonly scheme?: RouteScheme;
}

/** The stored move of one media buy to another webhook URL. Times are Unix ms on the store's clock. */
export interface Move {
  readonly mediaBuyId: string;
  readonly to: MoveTarget;
  readonly since: number;
  /** The id of the operation (stored call) that runs the current update. */
  readonly operationId?: string;
  /** The number of updates that were begun. `conflicts` counts those that were answered `CONFLICT`. */
  readonly tries: number;
  readonly conflicts: number;
  /** The time from which the media buy's revision may be read, after an update was answered `CONFLICT`. */
  readonly asksAt?: number;
  /** The media buy's revision that `get_media_buys` gave after a `CONFLICT`. The next update sends it. */
  readonly revision?: number;
  /** The number of checks in a row that found nothing new. */
  readonly looks: number;
  /** The reason why the move was refused, or waits. */
  readonly reason?: string;
}

/**
 * The state of a move, stored as the `list` of its row. `claimed`: a process has reserved the move and is about to
 * begin its update.
 */
export type MoveList = 'waiting' | 'claimed' | 'under_way' | 'refused';

export const moveIn = ({ value }: Pick<RegistrationRow, 'value'>): Move =>
  storedObject(value) as unknown as Move;

/** Returns the row that stores a move. @param dueAt the time of the next check; null: there is none. */
export function moveRow(
  { sender, id }: Pick<RegistrationRow, 'sender' | 'id'>,
  move: Move,
  list: MoveList,
  dueAt: number | null = null,
): RegistrationRow {
  const value = JSON.stringify(move);
  return {
    kind: 'move',
    sender,
    id,
    value,
    dueAt: dueAt === null ? null : Math.ceil(dueAt),
    list,
    expiresAt: null,
  };
}

/**
 * Returns a row that deletes a finished move when it is saved. The row of the media buy keeps the URL that the seller
 * was given.
 */
export const goneRow = (row: RegistrationRow): RegistrationRow => ({
  ...row,
  dueAt: null,
  list: null,
  expiresAt: 1,
});

/** The id of the row that controls a seller's moves. No media buy is stored under this id. */
export const TURNS_ID = '\u0001';

/** The updates of a seller's moves that run now: for each, the id of the move's row and the end of the lease. */
interface Turns {
  readonly live: readonly (readonly [id: string, until: number])[];
}

function turnsIn(rows: RegistrationRows, now: number): Turns {
  const row = rows.get('move', TURNS_ID);
  const { live = [] } = (row ? storedObject(row.value) : {}) as Partial<Turns>;
  return { live: live.filter(([, until]) => until > now) };
}

function saveTurns(rows: RegistrationRows, sender: string, turns: Turns, dueAt: number | null): void {
  const isGone = dueAt === null && turns.live.length === 0;
  rows.save({
    kind: 'move',
    sender,
    id: TURNS_ID,
    value: JSON.stringify(turns),
    dueAt: dueAt === null ? null : Math.ceil(dueAt),
    list: null,
    expiresAt: isGone ? 1 : null,
  });
}

/** Makes the seller's row due now, because a move waits to begin. */
export const wakeTurns = (rows: RegistrationRows, sender: string, now: number): void =>
  saveTurns(rows, sender, turnsIn(rows, now), now);

/** Ends the lease of a move whose update was answered or is not sent, so that another move may begin. */
export function freeTurn(rows: RegistrationRows, sender: string, id: string, now: number): void {
  const { live } = turnsIn(rows, now);
  const others = live.filter(([other]) => other !== id);
  if (others.length < live.length) saveTurns(rows, sender, { live: others }, now);
}

/**
 * Prolongs the lease of a move whose update is about to be sent.
 * @returns false if the lease has ended, so that another move may have begun instead.
 */
export function keepTurn(
  rows: RegistrationRows,
  { sender, id }: Pick<RegistrationRow, 'sender' | 'id'>,
  now: number,
  until: number,
): boolean {
  const { live } = turnsIn(rows, now);
  if (!live.some(([other]) => other === id)) return false;
  const kept = live.map(([other, end]) => [other, other === id ? until : end] as const);
  saveTurns(rows, sender, { live: kept }, rows.get('move', TURNS_ID)?.dueAt ?? now);
  return true;
}

/** The time after which a seller's row is due again at the latest, while moves wait. Ms. */
const TURNS_AGAIN_MS = 60_000;
/**
 * The time after which a seller's row is due again if no move waits, but former routes have to be retired (told.md
 * §5.3). Ms.
 */
const FORMERS_AGAIN_MS = 3_600_000;

/** The arguments with which `claimTurns` reserves waiting moves for this process. */
export interface Claim {
  readonly sender: string;
  /**
   * The `dueAt` that the seller's row got when this process reserved the row. Another value means that another process
   * has reserved it.
   */
  readonly heldAt: number | null;
  /** The ids of the moves that were waiting when the store listed them. */
  readonly waiting: readonly string[];
  /** The end of the lease of each move that is reserved. Unix ms on the store's clock. */
  readonly until: number;
  readonly perSeller: number;
}

/**
 * Reserves as many waiting moves for this process as the limit of concurrent updates allows. Reserves none while the
 * seller has asked for a pause, or before the seller may be given its new route.
 * @returns the ids of the reserved moves.
 */
export function claimTurns(
  rows: RegistrationRows,
  now: number,
  { sender, heldAt, waiting, until, perSeller }: Claim,
): readonly string[] {
  const row = rows.get('move', TURNS_ID);
  if (!row || row.dueAt !== heldAt) return [];
  const { live } = turnsIn(rows, now);
  const routes = ownRoutesIn(rows);
  const untilKnown = Object.values(routes).map((route) => now + untilTold(route, now));
  const pausedUntil = Math.max(pauseOf(sellerRowIn(rows), now), ...untilKnown);
  const claimed =
    pausedUntil > now
      ? []
      : waiting
          .flatMap((id) => rows.get('move', id) ?? [])
          .filter(({ list }) => list === 'waiting')
          .slice(0, Math.max(0, perSeller - live.length));
  for (const one of claimed) rows.save(moveRow(one, moveIn(one), 'claimed', until));
  const is = [...live, ...claimed.map(({ id }) => [id, until] as const)];
  const ends = is.map(([, at]) => at);
  const next = pausedUntil > now ? pausedUntil : Math.min(now + TURNS_AGAIN_MS, ...ends);
  const idle = hasFormers(routes) ? now + FORMERS_AGAIN_MS : null;
  saveTurns(rows, sender, { live: is }, waiting.length === 0 ? idle : Math.max(next, now + 1));
  return claimed.map(({ id }) => id);
}
