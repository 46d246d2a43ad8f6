import type { Event, Outcome, Receiver, ReceiverOptions } from '../../src/index.ts';
import type { KeyPair, SignDeliveryOptions, SignedDelivery } from '../../src/sender/sign.ts';
import { envelope, type Library } from './kit.ts';

export const URL_GIVEN = 'https://buyer.example/webhooks/proto';
export const AGENT = 'https://seller.example/mcp';

/** A receiver behind the fetch door, and the seller whose key it has pinned. */
export interface Setup {
  readonly receiver: Receiver;
  readonly pair: KeyPair;
  readonly handled: Event[];
  /** Codes and kinds of the owner's outcomes, in order. */
  readonly outcomes: Outcome[];
  readonly sign: (body?: object, more?: Partial<SignDeliveryOptions>) => Promise<SignedDelivery>;
  /** `200`, or status and code: `401 webhook_signature_invalid`. */
  readonly post: (delivery: Pick<SignedDelivery, 'headers' | 'body'>, init?: RequestInit) => Promise<string>;
  /** Signs and posts. */
  readonly deliver: (body?: object, more?: Partial<SignDeliveryOptions>) => Promise<string>;
}

export interface SetupOptions extends Partial<ReceiverOptions> {
  readonly handler?: (event: Event) => unknown;
}

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

async function said(response: Response): Promise<string> {
  const challenge = response.headers.get('www-authenticate');
  const code = challenge && (/error="([^"]*)"/.exec(challenge)?.[1] ?? challenge);
  const body = await response.text();
  const error = body && (JSON.parse(body) as { error: { code: string } }).error.code;
  return [response.status, code, error].filter(Boolean).join(' ');
}

export async function setup(lib: Library, options: SetupOptions = {}): Promise<Setup> {
  const { handler, ...more } = options;
  const pair = await lib.sender.generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' });
  const handled: Event[] = [];
  const outcomes: Outcome[] = [];
  const receiver = lib.core.createReceiver({
    publicUrl: URL_GIVEN,
    senders: [{ agentUrl: AGENT, pins: [pair.publicJwk] }],
    store: lib.memory.memoryStore(),
    durability: { require: 'process' },
    logger: quiet,
    onOutcome: (outcome) => outcomes.push(outcome),
    handlers: {
      other: async (event) => {
        handled.push(event);
        await handler?.(event);
      },
    },
    ...more,
  });
  const door = lib.fetch.webhookHandler(receiver);
  const sign: Setup['sign'] = (body = envelope(), changes = {}) =>
    lib.sender.signDelivery({ url: URL_GIVEN, body, key: pair.privateJwk, ...changes });
  const post: Setup['post'] = async ({ headers, body }, init = {}) =>
    said(
      await door(new Request(URL_GIVEN, { method: 'POST', headers, body: new Uint8Array(body), ...init })),
    );
  return {
    receiver,
    pair,
    handled,
    outcomes,
    sign,
    post,
    deliver: async (body, changes) => post(await sign(body, changes)),
  };
}
