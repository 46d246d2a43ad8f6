import { createPublicKey, hash, verify } from 'node:crypto';
import { createReceiver, type Receiver, type ReceiverOptions, type Sender } from '../../dist/index.js';
import { memoryStore } from '../../dist/memory.js';
import type { KeyPair } from '../../dist/sender.js';
import { AGENT_URL, PUBLIC_URL, type Alg, type Prepared } from './deliveries.ts';
import type { Contestant } from './measure.ts';
import { ON_THREAD } from './variants.ts';

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** A receiver as the README shows it, on the memory store, with the key pinned so that nothing is fetched. */
export function receiverFor(
  key: KeyPair,
  sender: Partial<Sender> = {},
  options: Partial<ReceiverOptions> = {},
): Receiver {
  return createReceiver({
    publicUrl: PUBLIC_URL,
    senders: [{ agentUrl: AGENT_URL, pins: [key.publicJwk], ...sender }],
    store: memoryStore(),
    durability: { require: 'process' },
    logger: SILENT,
    handlers: { other: async () => {} },
    ...options,
  });
}

/** The same on one thread. */
export function oneThread(
  key: KeyPair,
  sender: Partial<Sender> = {},
  options: Partial<ReceiverOptions> = {},
): Receiver {
  return receiverFor(key, sender, { ...ON_THREAD, ...options });
}

/** The same with Ed25519 by `sodium-native`, which other receivers of a benchmark do not look for: `run.ts` says so. */
export function withSodium(key: KeyPair): Receiver {
  process.env['PROTO_WEBHOOKS_SODIUM'] = '1';
  return oneThread(key);
}

/** OpenSSL's own verification with a key parsed once, in the form in which it is fastest: the unavoidable part. */
export function bareVerify(
  key: KeyPair,
  alg: Alg,
): (delivery: Pick<Prepared, 'base' | 'bareSignature'>) => void {
  const publicKey = createPublicKey({ key: key.publicJwk, format: 'jwk' });
  const algorithm = alg === 'ed25519' ? null : 'sha256';
  return ({ base, bareSignature }) => {
    if (!verify(algorithm, base, publicKey, bareSignature)) throw new Error('a good signature was refused');
  };
}

export function bareContestant(name: string, key: KeyPair, alg: Alg, all: readonly Prepared[]): Contestant {
  const check = bareVerify(key, alg);
  return {
    name,
    run(count) {
      for (let at = 0; at < count; at += 1) check(all[at] as Prepared);
    },
  };
}

const decoder = new TextDecoder('utf-8', { fatal: true });

/** FLOOR: one verification, one SHA-256 of the body, one decode, one JSON.parse. */
export function floorContestant(name: string, key: KeyPair, alg: Alg, all: readonly Prepared[]): Contestant {
  const check = bareVerify(key, alg);
  return {
    name,
    run(count) {
      for (let at = 0; at < count; at += 1) {
        const delivery = all[at] as Prepared;
        check(delivery);
        hash('sha256', delivery.body, 'buffer');
        JSON.parse(decoder.decode(delivery.body));
      }
    },
  };
}

/**
 * The whole way: every check, the handler, the completion. One at a time, as one door alone would. One receiver for all
 * repetitions, as a process has it, and events that it has not seen.
 * @param all `operations` of the plan.
 */
export function pipelineContestant(name: string, make: () => Receiver, all: readonly Prepared[]): Contestant {
  let receiver: Receiver | undefined;
  return {
    name,
    async setUp() {
      receiver ??= make();
      await receiver.ready();
    },
    async run(count, round) {
      const { verifyAndDispatch } = receiver as Receiver;
      const from = round * count;
      for (let at = from; at < from + count; at += 1) {
        const { body, rawHeaders } = all[at] as Prepared;
        const outcome = await verifyAndDispatch(body, rawHeaders);
        if (outcome.kind !== 'accepted')
          throw new Error(`the pipeline answered ${outcome.kind} ${outcome.code}`);
      }
    },
    close: () => receiver?.stop(),
  };
}
