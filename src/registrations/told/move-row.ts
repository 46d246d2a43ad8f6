import type { RegistrationRow, RegistrationRows } from '../../stores/store.ts';
import { storedObject } from '../operation-rows.ts';
import type { RouteScheme } from '../seller.ts';
import { pauseOf, sellerRowIn } from '../watch-task.ts';
import { hasFormers, ownRoutesIn, untilTold } from './own-routes.ts';

/*
 * The rows of moves (told.md §3.2, §3.3): one a media buy that is to be told another URL, by the id of its stream; and one a seller,
 * which is due when the next of them may be begun. Only rows of media buys that are under way are due themselves: they are looked at.
 */

/** Where a media buy is to go. */
export interface MoveTarget {
  /** Absent: it keeps its base. */
  readonly base?: string;
  /** Absent: each channel keeps its own. */
  readonly scheme?: RouteScheme;
}

/** A media buy on its way. Times are Unix ms on the store's clock. */
export interface Move {
  readonly mediaBuyId: string;
  readonly to: MoveTarget;
  readonly since: number;
  /** The update by which it is under way. */
  readonly operationId?: string;
  /** Updates that were begun, and those of them that were answered `CONFLICT`. */
  readonly tries: number;
  readonly conflicts: number;
  /** Its update was answered `CONFLICT`: the revision is read from then on. */
  readonly asksAt?: number;
  /** As `get_media_buys` gave it after such an answer: sent with the next update. */
  readonly revision?: number;
  /** Looks that found nothing new, since the last thing that was. */
  readonly looks: number;
  /** Why it was refused, or waits. */
  readonly reason?: string;
}

/** The list of a step's row. `claimed`: a process is about to begin it. */
export type MoveList = 'waiting' | 'claimed' | 'under_way' | 'refused';

export const moveIn = ({ value }: Pick<RegistrationRow, 'value'>): Move =>
  storedObject(value) as unknown as Move;

/** @param dueAt null: nobody looks at it. */
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

/** A step that is over: what was told is known by its stream. */
export const goneRow = (row: RegistrationRow): RegistrationRow => ({
  ...row,
  dueAt: null,
  list: null,
  expiresAt: 1,
});

/** The seller's row: no id of a media buy is stored so. */
export const TURNS_ID = '\u0001';

/** Places of a seller for updates that were not answered: until when each is held. */
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

/** A step waits: the seller's turn is now. */
export const wakeTurns = (rows: RegistrationRows, sender: string, now: number): void =>
  saveTurns(rows, sender, turnsIn(rows, now), now);

/** The update of a step was answered, or is not made: its place, where it has one, is free. */
export function freeTurn(rows: RegistrationRows, sender: string, id: string, now: number): void {
  const { live } = turnsIn(rows, now);
  const others = live.filter(([other]) => other !== id);
  if (others.length < live.length) saveTurns(rows, sender, { live: others }, now);
}

/**
 * The update of a step is about to be called: it keeps its place until then.
 * @returns false where the place is over: it may be another step's by now.
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

/** After which a seller's turn is looked at again by itself. Ms. */
const TURNS_AGAIN_MS = 60_000;
/** Likewise where no step waits, for as long as it has former routes (told.md §5.3). Ms. */
const FORMERS_AGAIN_MS = 3_600_000;

/** The steps that may begin now. */
export interface Claim {
  readonly sender: string;
  /** The seller's row, as it was due. */
  readonly heldAt: number | null;
  /** Ids of steps that wait, as they were listed. */
  readonly waiting: readonly string[];
  /** Until when each is held. */
  readonly until: number;
  readonly perSeller: number;
}

/**
 * Claims as many steps as the seller has places for, each for this process alone; none while it wants to be left alone, or may not be
 * told of its new route yet.
 * @returns their ids.
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
