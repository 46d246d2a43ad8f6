import { expect } from 'vitest';
import type { Store } from '../../../src/index.ts';
import { until } from '../../support/redis.ts';
import type { TestReceiver, TestReceiverOptions } from '../../receiver/setup.ts';
import { testReceiver, payloads, said } from '../../receiver/setup.ts';

/** No lease of a test lapses before the test moves the clock. */
export const LEASE_MS = 30_000;

/** A receiver, on a store that has to be durable. */
export function doorOf(store: Store, options: TestReceiverOptions = {}): Promise<TestReceiver> {
  return testReceiver({
    store,
    durability: { require: 'disk' },
    leaseMs: LEASE_MS,
    advanced: { waitMs: 300 },
    ...options,
  });
}

export type Event = ReturnType<typeof payloads.tool>;
export const newEvent = (): Event => payloads.tool('completed');

/** 503 with `Retry-After` and nothing of what is wrong, which is in the owner's part of the outcome. */
export async function expectUnavailable(
  at: TestReceiver,
  event: Event,
  code: string,
  says: RegExp,
): Promise<void> {
  const outcome = await at.deliver(event);
  expect(said(outcome)).toBe(`unavailable ${code} 503`);
  expect(outcome.response).toEqual({ status: 503, headers: { 'Retry-After': '5' }, body: '' });
  expect('detail' in outcome && outcome.detail).toMatch(says);
}

/** As a seller does: again, with 503 meanwhile, until it is told that the event is there. Says how it was told. */
export async function delivered(at: TestReceiver, event: Event): Promise<string> {
  let last = '';
  await until('the seller is told 200', async () => {
    const outcome = await at.deliver(event);
    expect([200, 503]).toContain(outcome.response.status);
    last = said(outcome);
    return outcome.response.status === 200;
  });
  return last;
}

/** What `ready` rejects with. */
export async function refusal(at: TestReceiver): Promise<string> {
  const error: unknown = await at.receiver.ready().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ name: 'ConfigError' });
  return (error as Error).message;
}
