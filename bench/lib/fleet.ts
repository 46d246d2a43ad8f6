/*
 * From events a day to processes, stores and caps: arithmetic on measured constants, no simulation. What it leaves out
 * is said in docs/performance.md, which prints it.
 */

/** What comes in, and how it is to be kept. */
export interface Load {
  readonly eventsPerDay: number;
  /** Busiest second over the average one. */
  readonly peakFactor: number;
  /** Share of the events that one seller sends, the one with the most. 0 to 1. */
  readonly busiestShare: number;
  /** Tasks a new event: 0.25 where a task has four events. */
  readonly tasksPerEvent: number;
  readonly bodyBytes: number;
  /** Request line and headers. */
  readonly headerBytes: number;
  readonly retentionDays: number;
  /** Mode `inbox`: how far the workers may be behind. */
  readonly backlogHours: number;
  /** Share of a processor, and of a store's measured rate, that is to be in use in the busiest second. */
  readonly utilisation: number;
}

/** Measured of a store: bench/results.json. */
export interface StoreConstants {
  /** Accepts with their completions, one seller, one primary. */
  readonly eventsPerSecond: number;
  /** Processor of the receiver's process for both. µs. */
  readonly micros: number;
  readonly doneBytes: number;
  readonly taskBytes: number;
  readonly nonceBytes: number;
  /** With a body of `MEASURED_BODY`. */
  readonly waitingBytes: number;
}

export interface Constants {
  /** A delivery over HTTP on the memory store, one process. µs. */
  readonly deliveryMicros: number;
  readonly store: StoreConstants;
  /** What one primary is to hold: assumed. */
  readonly primaryBytes: number;
}

/** The caps that the options have, by their names. */
export type Cap =
  'maxNoncesPerKey' | 'maxNoncesPerSender' | 'maxNonces' | 'maxRecordsPerSender' | 'maxPendingBytesPerSender';

export const DEFAULT_CAPS: Readonly<Record<Cap, number>> = {
  maxNoncesPerKey: 100_000,
  maxNoncesPerSender: 200_000,
  maxNonces: 10_000_000,
  maxRecordsPerSender: 1_000_000,
  maxPendingBytesPerSender: 268_435_456,
};

/** Bytes of everything that is held at once. */
interface Room {
  readonly done: number;
  readonly tasks: number;
  readonly nonces: number;
  readonly waiting: number;
}

export interface Fleet {
  readonly averagePerSecond: number;
  readonly peakPerSecond: number;
  readonly cores: number;
  /** So many that each is in use as `utilisation` says. */
  readonly primariesByRate: number;
  /** So many that each holds `primaryBytes`. */
  readonly primariesByRoom: number;
  /** Both. */
  readonly primaries: number;
  /** Whether one primary carries the busiest seller: a seller cannot be divided. */
  readonly busiestFits: boolean;
  readonly busiestPeakPerSecond: number;
  readonly roundTripsPerSecond: number;
  /** Requests into the receivers. */
  readonly inboundBitsPerSecond: number;
  /** All primaries together, no replicas. */
  readonly bytes: Room;
  readonly bytesTogether: number;
  /** What each cap has to be at least. */
  readonly caps: Readonly<Record<Cap, number>>;
}

const DAY_S = 86_400;
const HOUR_S = 3600;

/** docs/operations.md, "Room": at most, whatever the retention. */
export const TASK_DAYS = 30;

/** verification.md §2.5 and §2.13: a signature is good for 300 s, and its nonce is kept 60 s longer. */
export const NONCE_S = 360;

/** An accept and a completion; in mode `inbox` the workers' looks for work come on top, shared by a batch. */
export const ROUND_TRIPS = 2;

export const MEASURED_BODY = 1024;

export const perSecond = (perDay: number): number => perDay / DAY_S;

export function recordsHeld(
  eventsPerDay: number,
  { retentionDays, tasksPerEvent }: Pick<Load, 'retentionDays' | 'tasksPerEvent'>,
): number {
  return eventsPerDay * (retentionDays + tasksPerEvent * Math.max(TASK_DAYS, retentionDays));
}

/** Of one seller: the busiest hours are what queues up. */
function capsFor(load: Load, peakPerSecond: number): Fleet['caps'] {
  const { eventsPerDay, busiestShare, bodyBytes, backlogHours } = load;
  const busiest = peakPerSecond * busiestShare;
  return {
    maxNoncesPerKey: busiest * NONCE_S,
    maxNoncesPerSender: busiest * NONCE_S,
    maxNonces: peakPerSecond * NONCE_S,
    maxRecordsPerSender: recordsHeld(eventsPerDay * busiestShare, load),
    maxPendingBytesPerSender: busiest * backlogHours * HOUR_S * bodyBytes,
  };
}

function bytesFor(load: Load, peakPerSecond: number, store: StoreConstants): Room {
  const { eventsPerDay, retentionDays, tasksPerEvent, bodyBytes, backlogHours } = load;
  const waitingBytes = store.waitingBytes + (bodyBytes - MEASURED_BODY);
  return {
    done: eventsPerDay * retentionDays * store.doneBytes,
    tasks: eventsPerDay * tasksPerEvent * Math.max(TASK_DAYS, retentionDays) * store.taskBytes,
    nonces: peakPerSecond * NONCE_S * store.nonceBytes,
    waiting: peakPerSecond * backlogHours * HOUR_S * waitingBytes,
  };
}

export function fleetFor(load: Load, { deliveryMicros, store, primaryBytes }: Constants): Fleet {
  const { eventsPerDay, peakFactor, busiestShare, bodyBytes, headerBytes, utilisation } = load;
  const averagePerSecond = perSecond(eventsPerDay);
  const peakPerSecond = averagePerSecond * peakFactor;
  const busiestPeakPerSecond = peakPerSecond * busiestShare;
  const carries = store.eventsPerSecond * utilisation;
  const bytes = bytesFor(load, peakPerSecond, store);
  const bytesTogether = bytes.done + bytes.tasks + bytes.nonces + bytes.waiting;
  const primariesByRate = Math.ceil(peakPerSecond / carries);
  const primariesByRoom = Math.ceil(bytesTogether / primaryBytes);
  return {
    averagePerSecond,
    peakPerSecond,
    cores: Math.ceil((peakPerSecond * (deliveryMicros + store.micros)) / 1_000_000 / utilisation),
    primariesByRate,
    primariesByRoom,
    primaries: Math.max(primariesByRate, primariesByRoom),
    busiestFits: busiestPeakPerSecond <= carries,
    busiestPeakPerSecond,
    roundTripsPerSecond: peakPerSecond * ROUND_TRIPS,
    inboundBitsPerSecond: peakPerSecond * (bodyBytes + headerBytes) * 8,
    bytes,
    bytesTogether,
    caps: capsFor(load, peakPerSecond),
  };
}

/** What one seller on one primary can send: the measured rate, and what each default cap allows. A day is even. */
export interface Ceiling {
  readonly eventsPerSecond: number;
  readonly eventsPerDay: number;
}

export function ceilingOf(
  { peakFactor, utilisation }: Pick<Load, 'peakFactor' | 'utilisation'>,
  { eventsPerSecond }: Pick<StoreConstants, 'eventsPerSecond'>,
): Ceiling {
  const busiest = eventsPerSecond * utilisation;
  return { eventsPerSecond: busiest, eventsPerDay: (busiest / peakFactor) * DAY_S };
}

/** Events a second that one key may sign, and events a day that one sender may send, with the defaults. */
export function defaultsAllow(load: Pick<Load, 'retentionDays' | 'tasksPerEvent'>): {
  readonly keyPerSecond: number;
  readonly senderPerDay: number;
} {
  return {
    keyPerSecond: DEFAULT_CAPS.maxNoncesPerKey / NONCE_S,
    senderPerDay: DEFAULT_CAPS.maxRecordsPerSender / recordsHeld(1, load),
  };
}
