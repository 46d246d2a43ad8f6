import { EVENT_FIGURES, ROOM_FIGURES } from '../lib/event-figures.ts';
import type { Constants, StoreConstants } from '../lib/fleet.ts';
import type { Results } from '../lib/results.ts';
import { PRIMARY_BYTES } from './assumptions.ts';
import { medianOf } from './measured.ts';

export const STORE_NAMES = {
  mysql: 'MySQL',
  postgres: 'Postgres',
  redis: 'Redis',
  sqlite: 'SQLite',
} as const;

export type StoreName = keyof typeof STORE_NAMES;

export const EVENTS = 'events';

export function storeConstants(results: Results, store: StoreName): StoreConstants {
  const of = (what: string): number => medianOf(results, EVENTS, `${store}: ${what}`);
  return {
    eventsPerSecond: of(EVENT_FIGURES.rate),
    micros: of(EVENT_FIGURES.micros),
    doneBytes: of(ROOM_FIGURES.done),
    taskBytes: of(ROOM_FIGURES.task),
    nonceBytes: of(ROOM_FIGURES.nonce),
    waitingBytes: of(ROOM_FIGURES.waiting),
  };
}

/** The time between two answers of one busy process. Its pool takes part of a second processor beside that. */
const deliveryMicros = (results: Results): number =>
  1_000_000 / medianOf(results, 'http', 'node: whole pipeline, deliveries/s');

export function constantsOf(results: Results, store: StoreName): Constants {
  return {
    deliveryMicros: deliveryMicros(results),
    store: storeConstants(results, store),
    primaryBytes: PRIMARY_BYTES[store],
  };
}
