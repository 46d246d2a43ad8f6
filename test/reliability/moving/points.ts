import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { RegistrationRow, RegistrationRows } from '../../../src/stores/index.ts';

/** Where a process dies that moves media buys: each is behind what has become durable, or in a call. */
export const POINTS = [
  'stored',
  'claimed',
  'begun',
  'in call',
  'answered',
  'settled',
  'looked',
  'revision read',
  'begins again',
  'refused',
  'over',
  'admitted',
] as const;

/** Of a renewal, too. */
export const RENEWAL_POINTS = ['renewal begun', 'renewal durable', 'renewal told'] as const;

export type Point = (typeof POINTS)[number] | (typeof RENEWAL_POINTS)[number];

interface Death {
  readonly folder: string;
  readonly point: Point;
  /** Of all processes together. */
  readonly deaths: number;
}

/** Of those that reach a point the first one dies, and a few later ones. */
const LATER = 0.04;

/** Whether the process that reaches a point is one of those that die there. */
export function isDeath({ folder, point, deaths }: Death): boolean {
  for (let n = 0; n < deaths; n += 1) {
    try {
      if (n > 0 && Math.random() > LATER) return false;
      mkdirSync(join(folder, `died-${point}-${n}`));
      return true;
    } catch {
      // Another one has died this death.
    }
  }
  return false;
}

interface Move {
  readonly operationId?: string;
  readonly conflicts: number;
  readonly looks: number;
}

function pointOfMove({ list, value }: RegistrationRow): Point {
  const { operationId, conflicts, looks } = JSON.parse(value) as Move;
  if (list === 'claimed') return 'claimed';
  if (list === 'refused') return 'refused';
  if (list === 'under_way') return looks === 0 && operationId !== undefined ? 'begun' : 'looked';
  if (list === 'waiting') return conflicts > 0 ? 'begins again' : 'stored';
  return 'over';
}

function pointOfRoute({ sender, list, value }: RegistrationRow): Point | undefined {
  if (list !== null) return undefined;
  const { next, also } = JSON.parse(value) as {
    readonly next?: { readonly tellFrom?: number };
    readonly also?: string;
  };
  if (sender === '') return also === undefined ? undefined : 'renewal durable';
  if (!next) return undefined;
  return next.tellFrom === undefined ? 'renewal begun' : 'renewal told';
}

/** The row of a seller's turns is no step. */
export const TURNS_ID = '\u0001';

function pointOf(row: RegistrationRow): Point | undefined {
  if (row.kind === 'move') return row.id === TURNS_ID ? undefined : pointOfMove(row);
  if (row.kind === 'route') return pointOfRoute(row);
  if (row.kind !== 'operation') return undefined;
  return (JSON.parse(row.value) as { readonly state?: string }).state === 'ended' ? 'settled' : undefined;
}

/** Says which points a step on the store is, once it is durable. */
export function pointsSeen(rows: RegistrationRows, note: (point: Point) => void): RegistrationRows {
  return rowsWith(rows, {
    save: (row) => {
      const point = pointOf(row);
      if (point) note(point);
      rows.save(row);
    },
  });
}

/** Says the request key of each update of a step that is under way, before it is durable. */
export function begunIn(rows: RegistrationRows, note: (requestKey: string) => void): RegistrationRows {
  return rowsWith(rows, {
    save: (row) => {
      if (row.kind === 'operation') noteIfBegun(row, note);
      rows.save(row);
    },
  });
}

function noteIfBegun({ value }: RegistrationRow, note: (requestKey: string) => void): void {
  const { state, isStep, requestKey } = JSON.parse(value) as {
    readonly state?: string;
    readonly isStep?: boolean;
    readonly requestKey?: string;
  };
  if (isStep && state === 'calling' && requestKey !== undefined) note(requestKey);
}

/** Rows that differ in some methods. */
export function rowsWith(rows: RegistrationRows, changes: Partial<RegistrationRows>): RegistrationRows {
  return {
    get: (kind, id) => rows.get(kind, id),
    taskEnd: (id) => rows.taskEnd(id),
    lastTold: (id) => rows.lastTold(id),
    eventState: (key) => rows.eventState(key),
    acknowledge: (key) => rows.acknowledge(key),
    save: (row) => rows.save(row),
    ...changes,
  };
}
