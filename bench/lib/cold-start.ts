// A process of its own: how long until a verifier is imported, and until its first delivery is verified.
import { createPublicKey, verify } from 'node:crypto';
import { once } from 'node:events';
import type { Jwk } from '../../dist/index.js';

export interface ColdJob {
  readonly contestant: 'proto-webhooks' | 'http-message-signatures' | 'web-bot-auth';
  readonly jwk: Jwk;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export interface ColdTimes {
  readonly importMs: number;
  /** From the start of the import. */
  readonly firstMs: number;
}

/** Imports, and gives what verifies. */
type Start = () => Promise<(job: ColdJob) => Promise<boolean>>;

const check = (jwk: Jwk, data: Uint8Array, signature: Uint8Array): boolean =>
  verify(null, data, createPublicKey({ key: jwk, format: 'jwk' }), signature);

const STARTS: Readonly<Record<ColdJob['contestant'], Start>> = {
  'proto-webhooks': async () => {
    const { createReceiver } = await import('../../dist/index.js');
    return async ({ jwk, url, headers, body }) => {
      // A store is part of a receiver, but not of what is compared: its import counts for the first delivery.
      const { memoryStore } = await import('../../dist/memory.js');
      const receiver = createReceiver({
        publicUrl: url,
        senders: [{ agentUrl: 'https://seller.example/mcp', pins: [jwk] }],
        store: memoryStore(),
        durability: { require: 'process' },
        logger: { debug() {}, info() {}, warn() {}, error() {} },
        handlers: { other: () => undefined },
      });
      return (await receiver.verifyAndDispatch(body, headers)).kind === 'accepted';
    };
  },
  'http-message-signatures': async () => {
    const { httpbis } = await import('http-message-signatures');
    return async ({ jwk, url, headers }) => {
      const key = {
        id: jwk['kid'] as string,
        algs: ['ed25519'],
        verify: async (data: Uint8Array, signature: Uint8Array) => check(jwk, data, signature),
      };
      const done = await httpbis.verifyMessage(
        { keyLookup: async () => key },
        { method: 'POST', url, headers },
      );
      return done === true;
    };
  },
  'web-bot-auth': async () => {
    const { verify: verifyBotAuth } = await import('web-bot-auth');
    return ({ jwk, url, headers }) =>
      verifyBotAuth({ method: 'POST', url, headers: new Headers(headers) }, (data, signature) =>
        check(jwk, Buffer.from(data), signature),
      );
  },
};

const [job] = (await once(process, 'message')) as [ColdJob];
const started = performance.now();
const verifies = await STARTS[job.contestant]();
const importMs = performance.now() - started;
if (!(await verifies(job))) throw new Error(`${job.contestant} refused a good delivery`);
const times: ColdTimes = { importMs, firstMs: performance.now() - started };
process.send?.(times, () => process.exit());
