import type { CryptoEngine } from '../../src/auth/rfc9421/index.ts';
import {
  createVerifier,
  type Outcome,
  type Receiver,
  type ReceiverOptions,
  type Sender,
} from '../../src/index.ts';
import { createReceiverContext, receiverOf } from '../../src/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { DOORS } from '../adapters/contract/doors.ts';
import { firstAnswer, message, type WireAnswer, type WireRequest } from '../adapters/contract/wire.ts';
import { rawClient } from '../adapters/raw-client.ts';
import { NOW } from '../auth/rfc9421/support.ts';
import { MAX_BODY_BYTES } from './body-mutations.ts';
import { AUTHORITY, type Endpoint } from './draft.ts';
import { BEARER_SENDERS, HMAC_SENDERS, SIGNING_SENDERS } from './sellers.ts';
import { SILENT_LOGGER } from '../support/silent-logger.ts';

/** What a delivery came to: what every way has to say alike. */
export interface FuzzedAnswer {
  readonly status: number;
  /** `taken` where the answer is 2xx. */
  readonly code: string;
  readonly wwwAuthenticate: string | undefined;
}

/** One engine behind one door. */
export interface Way {
  readonly name: string;
  /** Every so many inputs. */
  readonly every?: number;
  /** Whether the request can be sent that way at all. */
  readonly takes: (endpoint: Endpoint, request: WireRequest) => boolean;
  readonly open: (endpoint: Endpoint, also?: Partial<ReceiverOptions>) => Promise<OpenWay>;
}

export interface OpenWay extends AsyncDisposable {
  readonly deliver: (request: WireRequest) => Promise<FuzzedAnswer>;
  /** Stops the receiver; whatever is delivered then is answered that it stops. */
  readonly stop: () => Promise<void>;
}

const URLS: Readonly<Record<Endpoint, string>> = {
  signature: `https://${AUTHORITY}/webhooks/signed?tenant=7`,
  prefix: `https://${AUTHORITY}/webhooks/prefix/*`,
  hmac: `https://${AUTHORITY}/webhooks/hmac`,
  bearer: `https://${AUTHORITY}/webhooks/bearer`,
};

const SENDERS: Readonly<Record<Endpoint, readonly Sender[]>> = {
  signature: SIGNING_SENDERS,
  prefix: SIGNING_SENDERS,
  hmac: HMAC_SENDERS,
  bearer: BEARER_SENDERS,
};

const HOUR_MS = 3_600_000;

export const fuzzOptions = (endpoint: Endpoint): ReceiverOptions => ({
  publicUrl: URLS[endpoint],
  senders: SENDERS[endpoint],
  store: memoryStore({ clockOffsetMs: () => NOW * 1000 - Date.now() }),
  durability: { require: 'process' },
  maxBodyBytes: MAX_BODY_BYTES,
  advanced: { waitMs: 0 },
  // A short one may be over at some of the ways, and not at others.
  retry: { baseMs: HOUR_MS, maxMs: HOUR_MS },
  now: () => NOW * 1000,
  logger: SILENT_LOGGER,
  handlers: { other: () => undefined },
  onChallenge: ({ authMatches }) => authMatches,
  // Keys are pinned: whatever is fetched all the same cannot be had.
  fetch: () => Promise.reject(new Error('nothing is fetched here')),
});

const verdictOf = ({ response, code }: Outcome): FuzzedAnswer => ({
  status: response.status,
  code: code ?? (response.status < 300 ? 'taken' : 'none'),
  wwwAuthenticate: response.headers['WWW-Authenticate'],
});

type Call = (receiver: Receiver, request: WireRequest) => Promise<Outcome>;

const threeArguments: Call = (receiver, { method, target, headers, body }) =>
  receiver.verifyAndDispatch(body, headers, { method, url: target });
const twoArguments: Call = (receiver, { headers, body }) => receiver.verifyAndDispatch(body, headers);

interface Engine {
  readonly engine?: CryptoEngine['name'];
  readonly verification?: 'pool' | 'main';
}

const called =
  ({ engine, ...options }: Engine, call: Call = threeArguments): Way['open'] =>
  async (endpoint, also) => {
    const receiver = receiverOf(
      createReceiverContext({ ...fuzzOptions(endpoint), ...options, ...also }, engine),
    );
    return {
      deliver: async (request) => verdictOf(await call(receiver, request)),
      stop: receiver.stop,
      [Symbol.asyncDispose]: receiver.stop,
    };
  };

const everything = (): boolean => true;

/** What the call without a request says nothing of. */
const isUsual = (endpoint: Endpoint, { method, target }: WireRequest): boolean =>
  endpoint !== 'prefix' && method === 'POST' && target.startsWith('/');

/** `Request` and `Headers` rewrite URLs and join lines before a door sees them. */
const survivesFetch = (endpoint: Endpoint, request: WireRequest): boolean => {
  const names = request.headers.map(([name]) => name.toLowerCase());
  return isUsual(endpoint, { ...request, method: 'POST' }) && new Set(names).size === names.length;
};

/** Hangs up once it has the head: a door that refuses a body would wait a second for its end. */
async function headOf(port: number, request: WireRequest): Promise<WireAnswer> {
  const client = await rawClient(port);
  client.socket.write(message(request));
  const received = await client.until(/\r\n\r\n/);
  client.socket.destroy();
  return firstAnswer(received);
}

/** The door of that name, over HTTP. What it answers is on the wire; which code it was its receiver tells. */
const throughDoor =
  (name: string): Way['open'] =>
  async (endpoint, also) => {
    const harness = DOORS.find((door) => door.name === name);
    if (!harness) throw new Error(`no door is named ${name}`);
    let last: Outcome | undefined;
    const options = {
      ...fuzzOptions(endpoint),
      ...also,
      onOutcome: (outcome: Outcome) => void (last = outcome),
    };
    const receiver = receiverOf(createReceiverContext(options));
    const open = await harness.open(receiver);
    return {
      deliver: async (request) => {
        last = undefined;
        const { status, headers } = await headOf(open.port, request);
        const wwwAuthenticate = headers.find(([field]) => field === 'www-authenticate')?.[1];
        const code = last === undefined ? 'not by the receiver' : verdictOf(last).code;
        return { status, code, wwwAuthenticate };
      },
      stop: receiver.stop,
      [Symbol.asyncDispose]: async () => {
        await open[Symbol.asyncDispose]();
        await receiver.stop();
      },
    };
  };

/** What a receiver has and a verifier has not. */
const RECEIVERS_OWN = ['store', 'handlers', 'durability', 'retry', 'advanced'];

/** A verifier whose owner stores every event: it answers what a receiver does. */
const verifying: Way['open'] = async (endpoint, also) => {
  const all = Object.entries({ ...fuzzOptions(endpoint), ...also });
  const verifier = createVerifier(Object.fromEntries(all.filter(([name]) => !RECEIVERS_OWN.includes(name))));
  return {
    deliver: async ({ method, target, headers, body }) => {
      const found = await verifier.verify(body, headers, { method, url: target });
      return verdictOf(found.kind === 'verified' ? await found.commit() : found);
    },
    stop: verifier.stop,
    [Symbol.asyncDispose]: verifier.stop,
  };
};

/** The first is what the others are compared with. */
export const WAYS: readonly Way[] = [
  { name: 'native', takes: everything, open: called({ engine: 'native', verification: 'main' }) },
  { name: 'native, pool', takes: everything, open: called({ engine: 'native', verification: 'pool' }) },
  { name: 'webcrypto', takes: everything, open: called({ engine: 'webcrypto' }) },
  { name: 'sodium', takes: everything, open: called({}) },
  { name: 'noble', every: 10, takes: everything, open: called({ engine: 'noble' }) },
  { name: 'two arguments', takes: isUsual, open: called({}, twoArguments) },
  { name: 'verifier', takes: everything, open: verifying },
  { name: 'node', takes: everything, open: throughDoor('node') },
  { name: 'fetch', takes: survivesFetch, open: throughDoor('fetch') },
  { name: 'express 5', takes: everything, open: throughDoor('express 5') },
];
