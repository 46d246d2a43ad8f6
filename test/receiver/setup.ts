import {
  generateKey,
  type KeyPair,
  type PayloadInput,
  signDelivery,
  type SignDeliveryOptions,
} from '../../src/sender/sign.ts';
import {
  type Alarm,
  createReceiver,
  type Handler,
  type HandlerContext,
  type Outcome,
  type Receiver,
  type ReceiverOptions,
} from '../../src/index.ts';
import type { Event } from '../../src/events/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { createMemoryState, type MemoryState } from '../../src/stores/for-tests.ts';
import { loadOnDemand } from '../../src/for-tests.ts';
import { samplePayloads } from '../../src/testing/index.ts';
import { gate } from '../support/gate.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

export { gate };

export const URL_GIVEN = 'https://buyer.example/webhooks/proto';
export const AGENT = 'https://seller.example/mcp';
export const payloads = samplePayloads();

/** What a handler saw. */
export interface Seen {
  readonly event: Event;
  readonly ctx: HandlerContext;
}

export interface TestReceiver {
  readonly receiver: Receiver;
  readonly seen: Seen[];
  readonly alarms: Alarm[];
  readonly outcomes: Outcome[];
  readonly state: MemoryState;
  /** Signs now and delivers. */
  readonly deliver: (payload: PayloadInput, sign?: Partial<SignDeliveryOptions>) => Promise<Outcome>;
  /** Delivers once more what was signed before. */
  readonly sign: (payload: PayloadInput, sign?: Partial<SignDeliveryOptions>) => Promise<Signed>;
  readonly send: (signed: Signed, receiver?: Receiver) => Promise<Outcome>;
}

export type Signed = Awaited<ReturnType<typeof signDelivery>>;

let pair: KeyPair | undefined;
export async function sellerKey(): Promise<KeyPair> {
  return (pair ??= await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' }));
}

export interface TestReceiverOptions extends Partial<ReceiverOptions> {
  readonly handler?: Handler<Event>;
  readonly state?: MemoryState;
}

/** A receiver on a memory store with the seller's key pinned, and a seller. */
export async function testReceiver(options: TestReceiverOptions = {}): Promise<TestReceiver> {
  const key = await sellerKey();
  const { handler, state = createMemoryState(), ...more } = options;
  const seen: Seen[] = [];
  const alarms: Alarm[] = [];
  const outcomes: Outcome[] = [];
  const receiver = createReceiver({
    publicUrl: URL_GIVEN,
    senders: [{ agentUrl: AGENT, pins: [key.publicJwk] }],
    store: memoryStore({ state }),
    durability: { require: 'process' },
    logger: SILENT_LOGGER,
    handlers: {
      other: async (event, ctx) => {
        seen.push({ event, ctx });
        await handler?.(event, ctx);
      },
    },
    onAlarm: (alarm) => alarms.push(alarm),
    onOutcome: (outcome) => outcomes.push(outcome),
    ...more,
  });
  const sign: TestReceiver['sign'] = (payload, changes = {}) =>
    signDelivery({ url: URL_GIVEN, body: payload, key: key.privateJwk, ...changes });
  const send: TestReceiver['send'] = (signed, to = receiver) =>
    to.verifyAndDispatch(signed.body, signed.headers);
  return {
    receiver,
    seen,
    alarms,
    outcomes,
    state,
    sign,
    send,
    deliver: async (payload, changes) => send(await sign(payload, changes)),
  };
}

/** A handler whose runs last until the test releases them. */
export interface HeldHandler {
  readonly handler: () => Promise<void>;
  /** Its first run has begun. */
  readonly started: Promise<void>;
  readonly release: () => void;
}

export function heldHandler(): HeldHandler {
  const started = gate();
  const released = gate();
  return {
    handler: async () => {
      started.open();
      await released.opened;
    },
    started: started.opened,
    release: released.open,
  };
}

/** Alarms of refusals are raised beside the answer, which waits for none of them: here they are raised. */
export async function alarmsTold(): Promise<void> {
  await loadOnDemand();
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** `kind code status`, as one string to compare. */
export function said(outcome: Outcome): string {
  return [outcome.kind, outcome.code, outcome.response.status].filter((part) => part !== undefined).join(' ');
}
