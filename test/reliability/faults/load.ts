import { until } from '../../support/redis.ts';
import type { TestReceiver } from '../../receiver/setup.ts';
import type { Event } from './at-door.ts';
import { newEvent } from './at-door.ts';

/** Sellers that send events one after the other, each again until its answer is final. */
export interface Load {
  /** Told 200, in this order. */
  readonly told: readonly string[];
  /** How often a seller was told 503. */
  readonly refused: () => number;
  /** Whatever else a seller was told: there must be none. */
  readonly other: readonly number[];
  /** Waits until so many more were told 200. */
  readonly more: (count: number) => Promise<void>;
  /** No new events; resolves when all that were begun are told. */
  readonly end: () => Promise<void>;
}

export function loadOf(at: TestReceiver, sellers: number): Load {
  const told: string[] = [];
  const other: number[] = [];
  const stop = new AbortController();
  let refused = 0;
  const send = async (event: Event): Promise<void> => {
    for (;;) {
      const { status } = (await at.deliver(event)).response;
      if (status === 503) refused += 1;
      else if (status !== 200) other.push(status);
      if (status === 200) told.push(event.idempotency_key);
      if (status !== 503) return;
      await new Promise((resolve) => {
        setTimeout(resolve, 20);
      });
    }
  };
  const running = Array.from({ length: sellers }, async () => {
    while (!stop.signal.aborted) await send(newEvent());
  });
  return {
    told,
    other,
    refused: () => refused,
    more: (count) => {
      const before = told.length;
      return until(`${count} more were told 200`, async () => told.length >= before + count);
    },
    end: async () => {
      stop.abort();
      await Promise.all(running);
    },
  };
}
