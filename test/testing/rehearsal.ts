import { onTestFinished } from 'vitest';
import type { Alarm, AlarmCode } from '../../src/index.ts';
import { createFakeSeller, type DeliverOptions, type FakeSeller } from '../../src/testing/index.ts';
import {
  testReceiver,
  type TestReceiver,
  type TestReceiverOptions,
  said,
  URL_GIVEN,
} from '../receiver/setup.ts';

/** A fake seller and a receiver that knows it only by its documents, on one clock that the test moves. */
export interface Rehearsal {
  readonly seller: FakeSeller;
  readonly alarms: readonly Alarm[];
  readonly alarmsOf: (code: AlarmCode) => Alarm[];
  /** What came of what was delivered. */
  readonly outcomes: TestReceiver['outcomes'];
  readonly now: () => number;
  readonly advance: (ms: number) => void;
  /** Delivers a new event: kind, code and status of the outcome. */
  readonly deliver: (options?: DeliverOptions) => Promise<string>;
}

export const MINUTE = 60_000;
export const JWKS = '/.well-known/jwks.json';
export const BRAND = '/.well-known/brand.json';
export const REVOCATIONS = '/.well-known/proto-revocations.json';

export async function rehearse(more: TestReceiverOptions = {}): Promise<Rehearsal> {
  const start = Date.now();
  let now = start;
  const clock = (): number => now;
  const seller = await createFakeSeller({ url: URL_GIVEN, now: clock });
  const { receiver, alarms, outcomes } = await testReceiver({
    senders: [seller.sender],
    allowLoopback: true,
    now: clock,
    ...more,
  });
  onTestFinished(async () => {
    await receiver.stop();
    await seller.close();
  });
  return {
    seller,
    alarms,
    outcomes,
    alarmsOf: (code) => alarms.filter((alarm) => alarm.code === code),
    now: clock,
    advance: (ms) => {
      now += ms;
    },
    deliver: async (options) => {
      // The store keeps its own time: what happened is told in that.
      const timestamp = new Date(start).toISOString();
      const signed = await seller.sign(seller.payloads.tool('completed', { timestamp }), options);
      return said(await receiver.verifyAndDispatch(signed.body, signed.headers));
    },
  };
}
