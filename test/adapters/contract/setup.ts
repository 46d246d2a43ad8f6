import { createReceiver, type Outcome, type Receiver, type ReceiverOptions } from '../../../src/index.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import type { FakeSeller } from '../../../src/testing/index.ts';
import { AUTHORITY, MAX_BODY_BYTES, PUBLIC_URL, type Given } from './cases.ts';

/** A receiver with a store of its own, and what it did. */
export interface Setup {
  readonly receiver: Receiver;
  readonly outcomes: readonly Outcome[];
  readonly alarms: readonly string[];
  /** Lines of the log at level `warn` and above. */
  readonly warnings: readonly string[];
  /** How often its store was asked to take an event. */
  readonly accepts: () => number;
  /** Keys of the events that handlers had. */
  readonly handled: readonly string[];
}

export function openSetup(seller: FakeSeller, more: Partial<ReceiverOptions> = {}): Setup {
  const outcomes: Outcome[] = [];
  const alarms: string[] = [];
  const warnings: string[] = [];
  const handled: string[] = [];
  let accepts = 0;
  const store = memoryStore();
  const receiver = createReceiver({
    publicUrl: PUBLIC_URL,
    senders: [seller.sender],
    store: {
      ...store,
      accept: (request) => {
        accepts += 1;
        return store.accept(request);
      },
    },
    durability: { require: 'process' },
    allowLoopback: true,
    maxBodyBytes: MAX_BODY_BYTES,
    logger: {
      debug() {},
      info() {},
      warn: (_fields, message) => void warnings.push(message),
      error: (_fields, message) => void warnings.push(message),
    },
    onOutcome: (outcome) => void outcomes.push(outcome),
    onAlarm: ({ code }) => void alarms.push(code),
    handlers: { other: (event) => void handled.push(event.idempotencyKey) },
    ...more,
  });
  return { receiver, outcomes, alarms, warnings, handled, accepts: () => accepts };
}

/** A request target as it stands in the URL; `URL` would rewrite it. */
const targetOf = (url: string): string => url.slice(url.indexOf('/', 'https://'.length));

export const givenFor = (seller: FakeSeller): Given => ({
  seller,
  signed: async ({ payload = seller.payloads.tool('completed'), url = PUBLIC_URL, ...more } = {}) => {
    const { method, headers, body } = await seller.sign(payload, { url, ...more });
    return {
      method,
      target: targetOf(url),
      headers: [['Host', AUTHORITY], ...Object.entries(headers)],
      body,
    };
  },
});
