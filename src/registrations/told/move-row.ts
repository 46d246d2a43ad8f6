// Keeps the rows of moves: one for each media buy that is to be moved, and one for each seller (told.md §3.2, §3.3).
// `apply` stores them, and the loop of moves works on them. A seller's row is due when its next step may begin. The row
// of a media buy is due only while its step is under way.
import type { RegistrationRow, RegistrationRows } from '../../stores/store.ts';
import { storedObject } from '../operation-rows.ts';
import type { RouteScheme } from '../seller.ts';
import { pauseOf, sellerRowIn } from '../watch-task.ts';
import { hasFormers, ownRoutesIn, untilTold } from './own-routes.ts';

/** The target of a move. */
export interface MoveTarget {
  /** The base URL; absent: it stays as it is. */
  readonly base?: string;
  /** Absent: the scheme of each channel stays. */
  readonly scheme?: RouteScheme;
}

/** A media buy that is to be moved. Times are Unix ms on the store's clock. */
export interface Move {
  readonly mediaBuyId: string;
  readonly to: MoveTarget;
  readonly since: number;
  /** The operation of the update that moves it now. */
  readonly operationId?: string;
  /** The number of updates that were begun, and the number of those that were answered `CONFLICT`. */
  readonly tries: number;
  readonly conflicts: number;
  /** The time from which the revision may be read, because the update was answered `CONFLICT`. */
  readonly asksAt?: number;
  /** The revision that `get_media_buys` gave after a `CONFLICT`. The next update sends it. */
  readonly revision?: number;
  /** The number of checks in a row that found nothing new. */
  readonly looks: number;
  /** The reason why it was refused, or is waiting. */
  readonly reason?: string;
}

/** The list of a step's row. `claimed`: a process has reserved the step and is about to begin it. */
export type MoveList = 'waiting' | 'claimed' | 'under_way' | 'refused';

export const moveIn = ({ value }: Pick<RegistrationRow, 'value'>): Move =>
  storedObject(value) as unknown as Move;

/** Makes the row of a step. @param dueAt the time of the next check; null: there is none. */
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
 * Returns the row of a step that is over, so that it is deleted. The stream of the media buy knows the URL that the
 * seller was given.
 */
export const goneRow = (row: RegistrationRow): RegistrationRow => ({
  ...row,
  dueAt: null,
  list: null,
  expiresAt: 1,
});

/** The id of the seller's row. No media buy is stored under this id. */
export const TURNS_ID = '\u0001';

/** The call slots of a seller that updates occupy, each with the end of its lease. */
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

/** Makes the seller's row due, because a step is waiting. */
export const wakeTurns = (rows: RegistrationRows, sender: string, now: number): void =>
  saveTurns(rows, sender, turnsIn(rows, now), now);

/** Frees the call slot of a step whose update was answered, or is not made. */
export function freeTurn(rows: RegistrationRows, sender: string, id: string, now: number): void {
  const { live } = turnsIn(rows, now);
  const others = live.filter(([other]) => other !== id);
  if (others.length < live.length) saveTurns(rows, sender, { live: others }, now);
}

/**
 * Prolongs the call slot of a step whose update is about to be sent.
 * @returns false if its lease is over: another step may have the slot by now.
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

/** The time after which a seller's row is due again even if nothing makes it due. Ms. */
const TURNS_AGAIN_MS = 60_000;
/** The same time if no step waits, but the seller has former routes (told.md §5.3). Ms. */
const FORMERS_AGAIN_MS = 3_600_000;

/** The facts that are needed to reserve steps. */
export interface Claim {
  readonly sender: string;
  /** The time at which the seller's row was due. */
  readonly heldAt: number | null;
  /** The ids of the steps that were waiting when they were listed. */
  readonly waiting: readonly string[];
  /** The end of the lease of each reserved step. */
  readonly until: number;
  readonly perSeller: number;
}

/**
 * Reserves as many steps as the seller has free call slots, for this process alone. It reserves none while the seller
 * has asked for a pause, or before the seller may be given its new route.
 * @returns the ids of the reserved steps.
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
