import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { webhookHandler } from '../../../src/adapters/node.ts';
import {
  createKit,
  type KitOptions,
  PROBE_KEYS,
  type ProbeKit,
  probeReceiver,
  type ProbeResult,
} from '../../../src/cli/for-tests.ts';
import { createReceiver, type Receiver, type ReceiverOptions } from '../../../src/index.ts';
import { generateKey, type KeyPair } from '../../../src/sender/sign.ts';
import { memoryStore } from '../../../src/stores/memory.ts';
import { SILENT_LOGGER } from '../../support/silent-logger.ts';

let made: Promise<readonly KeyPair[]> | undefined;

/** What `keys generate --probe` makes. */
export function probeKeys(): Promise<readonly KeyPair[]> {
  return (made ??= Promise.all(
    PROBE_KEYS.map(({ alg, purpose, kid }) => generateKey(alg, purpose, { kid })),
  ));
}

export interface Bench extends AsyncDisposable {
  readonly url: string;
  readonly receiver: Receiver;
}

/** A receiver on a real server, behind whatever `wrap` does to its requests. */
export async function bench(
  { publicPath, ...options }: Partial<ReceiverOptions> & { readonly publicPath?: string } = {},
  wrap: (inner: RequestListener, receiver: Receiver) => RequestListener = (inner) => inner,
): Promise<Bench> {
  const late: { listener?: RequestListener } = {};
  const server = createServer((req, res) => late.listener?.(req, res));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = `${origin}/webhooks/proto`;
  const pins = (await probeKeys()).map(({ publicJwk }) => publicJwk);
  const receiver = createReceiver({
    publicUrl: publicPath === undefined ? url : origin + publicPath,
    senders: [
      { agentUrl: 'https://probe.invalid/mcp', pins, revocation: { revokedKids: ['probe-revoked'] } },
    ],
    store: memoryStore(),
    allowLoopback: true,
    logger: SILENT_LOGGER,
    handlers: { other: async () => undefined },
    ...options,
  });
  late.listener = wrap(webhookHandler(receiver), receiver);
  return {
    url,
    receiver,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await receiver.stop();
    },
  };
}

/** What cases are sent with, to a URL. */
export async function probeKit(url: string, options: Partial<KitOptions> = {}): Promise<ProbeKit> {
  const keys = options.keys ?? (await probeKeys()).map(({ privateJwk }) => privateJwk);
  return createKit(
    {
      url,
      protocol: 'proto',
      edition: '3.0',
      maxBodyBytes: 1_048_576,
      timeoutMs: 30_000,
      keys,
      now: Date.now,
      ...options,
    },
    keys[0] ?? {},
  );
}

/** Every case against a URL. */
export async function probed(
  url: string,
  options: Partial<KitOptions> = {},
  wanted: readonly string[] = [],
): Promise<readonly ProbeResult[]> {
  return probeReceiver(await probeKit(url, options), wanted);
}

/** Names of the cases that failed. */
export const failures = (results: readonly ProbeResult[]): readonly string[] =>
  results.filter(({ verdict }) => verdict === 'fail').map(({ name }) => name);
