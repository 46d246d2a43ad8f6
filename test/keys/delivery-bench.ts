import { onTestFinished } from 'vitest';
import { type Alarm, type AlarmCode, createReceiver, type Outcome, type Sender } from '../../src/index.ts';
import { generateKey, type KeyPair, signDelivery, type SignedDelivery } from '../../src/sender/sign.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { samplePayloads } from '../../src/testing/index.ts';
import { said, URL_GIVEN } from '../receiver/setup.ts';
import { SILENT, START } from './setup.ts';

/** A receiver with a clock that the test moves, before sellers on real servers. */
export interface DeliveryBench {
  readonly alarmsOf: (code: AlarmCode) => Alarm[];
  readonly advance: (ms: number) => void;
  /** A new event, signed now. */
  readonly sign: (key: KeyPair) => Promise<SignedDelivery>;
  readonly send: (delivery: SignedDelivery) => Promise<Outcome>;
  /** Signs a new event, delivers it, and says `kind code status`. */
  readonly deliver: (key: KeyPair) => Promise<string>;
}

export function deliveryBench(...senders: readonly Sender[]): DeliveryBench {
  let time = START;
  const now = (): number => time;
  const alarms: Alarm[] = [];
  const payloads = samplePayloads({ now });
  const receiver = createReceiver({
    publicUrl: URL_GIVEN,
    senders,
    store: memoryStore({ clockOffsetMs: () => time - Date.now() }),
    durability: { require: 'process' },
    allowLoopback: true,
    now,
    logger: SILENT,
    handlers: { other: () => undefined },
    onAlarm: (alarm) => alarms.push(alarm),
  });
  onTestFinished(() => receiver.stop());
  const sign: DeliveryBench['sign'] = (key) =>
    signDelivery({ url: URL_GIVEN, body: payloads.tool('completed'), key: key.privateJwk, now });
  const send: DeliveryBench['send'] = (delivery) =>
    receiver.verifyAndDispatch(delivery.body, delivery.headers);
  return {
    alarmsOf: (code) => alarms.filter((alarm) => alarm.code === code),
    advance: (ms) => {
      time += ms;
    },
    sign,
    send,
    deliver: async (key) => said(await send(await sign(key))),
  };
}

export const keyNamed = (kid: string): Promise<KeyPair> => generateKey('ed25519', 'webhook-signing', { kid });

export const ACCEPTED = 'accepted 200';
export const UNKNOWN = 'refused webhook_signature_key_unknown 401';
export const INVALID = 'refused webhook_signature_invalid 401';
export const UNAVAILABLE = 'unavailable keys_unavailable 503';
