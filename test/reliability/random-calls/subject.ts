import { expect } from 'vitest';
import type { Store } from '../../../src/index.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import type { StoreHarness } from '../../../src/testing/index.ts';

/** Lets others go first where the scheduler wants it; elsewhere it does nothing. */
export type Gate = (what: string) => Promise<void>;

/** Two handles on a new, empty store. */
export interface Opened extends StoreHarness {
  /** Compares what the store keeps beside its rows (counts, indexes) with the rows. @throws Error */
  readonly expectKeptRight?: () => Promise<void>;
}

/** A store under test. */
export interface Subject {
  readonly name: string;
  /** @param gate for what the handles do to reach their rows. */
  readonly open: (gate: Gate) => Promise<Opened>;
  /**
   * What its clock says at an offset of 0, where it stands still. Unix ms. `goes on`: it is the machine's, and instants in
   * answers are not compared.
   */
  readonly clock: number | 'goes on';
  /** Its looks for work take rows one by one, so that each answer is that of memory: see `isSameAnswer`. */
  readonly findsOneByOne?: boolean;
  /** Its lists show what has expired until it is deleted: they are compared by the contract suite alone. */
  readonly listsExpired?: boolean;
  /** Characters of a sender that the store takes, where it does not take any number. */
  readonly longestSender?: number;
  /** Calls that are made at once, at most: more where calls are taken in the order in which they were made. */
  readonly mostAtOnce?: number;
}

/** The clock of a subject, and of the stores in memory that it is compared with. */
export interface Clock {
  /** Unix ms, as the subject has it. */
  readonly now: () => number;
  readonly offsetMs: () => number;
  readonly advance: (ms: number) => void;
}

/** Of a clock that stands: no instant of a store is 0. Ms. */
const START_MS = 1_767_225_600_000;

/** Shorter steps tell instants apart; longer ones are waits. Ms. */
const WAIT_MS = 1000;

/**
 * A clock that goes on ends each wait where it would on a machine that needs no time for calls, so that what a slow one
 * needs does not add up to what the steps between two limits leave.
 */
export function clockOf({ clock }: Subject): Clock {
  const isGoing = clock === 'goes on';
  const startedAt = Date.now();
  let offsetMs = isGoing ? 0 : START_MS;
  let waitedMs = 0;
  return {
    now: () => Date.now() + offsetMs + (isGoing ? 0 : clock),
    offsetMs: () => offsetMs,
    advance: (ms) => {
      if (isGoing && ms >= WAIT_MS) {
        waitedMs += ms;
        offsetMs = Math.max(offsetMs, startedAt + waitedMs - Date.now());
      } else offsetMs += ms;
    },
  };
}

/** A store in memory whose time is `now`. Unix ms. */
export const inMemory = (now: () => number): Store =>
  memoryStore({ clockOffsetMs: () => now() - Date.now() });

/** What a history is made on. */
export interface Play {
  /** As two processes have them. */
  readonly handles: readonly [Store, Store];
  readonly clock: Clock;
  readonly advance: (ms: number) => void;
  readonly opened: Opened;
}

/** Runs `play` on a new store of the subject's, and removes that. */
export async function onNewStore<T>(
  subject: Subject,
  play: (on: Play) => Promise<T>,
  gate: Gate = async () => {},
): Promise<T> {
  const clock = clockOf(subject);
  const opened = await subject.open(gate);
  const { a, b, setClockOffsetMs, cleanup } = opened;
  setClockOffsetMs(clock.offsetMs());
  const advance = (ms: number): void => {
    clock.advance(ms);
    setClockOffsetMs(clock.offsetMs());
  };
  try {
    await a.open();
    await b.open();
    return await play({ handles: [a, b], clock, advance, opened });
  } finally {
    await cleanup();
  }
}

/** The handle of a call, by turns. */
export const handleOf = (handles: readonly Store[], turn: number): Store =>
  handles[turn % handles.length] ?? expect.fail('no handle');
