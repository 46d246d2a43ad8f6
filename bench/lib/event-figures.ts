import type { RoomKind } from './room.ts';

/** Names of the figures of section `events`, of one store. */
export const EVENT_FIGURES = {
  rate: 'events/s (accept and completion)',
  micros: 'processor time of the receiver’s process an event, µs',
  server: 'time of the database’s server an event, µs',
  bareServer: 'time of the database’s server a bare write, µs',
} as const;

export const ROOM_FIGURES: Readonly<Record<RoomKind, string>> = {
  done: 'bytes of an event that is done',
  task: 'bytes of a task',
  nonce: 'bytes of a nonce',
  waiting: 'bytes of an event of 1 KB that waits',
};

/** How many are under way at once. */
export const WIDTH = 64;
