import { type EventRegistrations, Fault, type ReceiverOptions, type Sender } from '../../../src/index.ts';
import { sampleChallenge } from '../../../src/testing/for-tests.ts';
import type { DeliverOptions, FakeSeller } from '../../../src/testing/index.ts';
import type { Capability } from './serving.ts';
import type { WireRequest } from './wire.ts';

export const AUTHORITY = 'buyer.example';
export const PUBLIC_URL = `https://${AUTHORITY}/webhooks/proto`;
export const MAX_BODY_BYTES = 4_096;

/** What cases are written with. */
export interface Given {
  readonly seller: FakeSeller;
  /** A signed delivery of `payload` (any completed task by default), as a request to `publicUrl`. */
  readonly signed: (
    options?: DeliverOptions & { readonly payload?: object | string },
  ) => Promise<WireRequest>;
}

/** Requests in their order, and what they are sent to. */
export interface Case {
  readonly name: string;
  readonly status: readonly number[];
  readonly options?: Partial<ReceiverOptions>;
  /** What the seller is registered with, besides. */
  readonly sender?: Partial<Sender>;
  readonly needs?: readonly Capability[];
  /** Its 200 is for something else than an event. */
  readonly eventless?: true;
  readonly stopped?: true;
  readonly requests: (given: Given) => Promise<readonly WireRequest[]>;
}

type Headers = WireRequest['headers'];

const adding =
  (...lines: Headers) =>
  (request: WireRequest): WireRequest => ({ ...request, headers: [...request.headers, ...lines] });

const setting =
  (name: string, value: string | undefined) =>
  (request: WireRequest): WireRequest => {
    const rest = request.headers.filter(([given]) => given.toLowerCase() !== name.toLowerCase());
    return { ...request, headers: value === undefined ? rest : [...rest, [name, value]] };
  };

/** One request: a good delivery, spoilt or not. */
const one =
  (change: (request: WireRequest) => WireRequest = (request) => request, options: DeliverOptions = {}) =>
  async ({ signed }: Given): Promise<readonly WireRequest[]> => [change(await signed(options))];

const elsewhere = async (signed: Given['signed']): Promise<WireRequest> =>
  setting('Host', 'other.example')(await signed({ url: 'https://other.example/webhooks/proto' }));

const TYPES: readonly Case[] = (
  [
    ['of another case, with charset', 'Application/JSON; Charset="UTF-8"', 200],
    ['with parameters', 'application/json;charset=utf-8; profile=x', 200],
    ['of another charset', 'application/json; charset=iso-8859-1', 415],
    ['that is malformed', 'application/json; charset', 415],
    ['of another kind', 'text/plain', 415],
  ] as const
).map(([name, type, status]) => ({
  name: `a Content-Type ${name}`,
  status: [status],
  requests: one(undefined, { sign: { headers: { 'Content-Type': type } } }),
}));

/** Signed as they are sent; the second one is refused by the very same door, for want of the option. */
const OTHER_TYPES: readonly Case[] = (
  [
    [200, ['application/a2a+json']],
    [415, []],
  ] as const
).map(([status, contentTypes]) => ({
  name: `application/a2a+json with contentTypes ${JSON.stringify(contentTypes)}`,
  status: [status],
  options: { contentTypes },
  requests: one(undefined, { sign: { headers: { 'Content-Type': 'application/a2a+json' } } }),
}));

const TOKEN = 'tok_0123456789abcdef0123456789abcdef';
const withToken = (token: string) =>
  one(undefined, { sign: { headers: { 'X-A2A-Notification-Token': token } } });

/** The agent transport's own push. */
const TOKENS: readonly Case[] = [
  {
    name: 'a token beside the signature',
    status: [200],
    sender: { notificationToken: { token: TOKEN, onMismatch: 'refuse' } },
    requests: withToken(TOKEN),
  },
  {
    name: 'another token beside the signature',
    status: [401],
    sender: { notificationToken: { token: TOKEN, onMismatch: 'refuse' } },
    requests: withToken(`${TOKEN}0`),
  },
  ...(
    [
      [200, TOKEN],
      [401, `${TOKEN}0`],
    ] as const
  ).map(([status, token]): Case => ({
    name: `a bearer token in a header of its own: ${status}`,
    status: [status],
    sender: { auth: { bearer: { token: TOKEN, header: 'X-A2A-Notification-Token' } } },
    requests: one(undefined, { auth: { bearer: { token, header: 'x-a2a-notification-token' } } }),
  })),
];

const challenged =
  (changes: object = {}) =>
  async ({ signed, seller }: Given): Promise<readonly WireRequest[]> => [
    await signed({ payload: sampleChallenge(seller.agentUrl, undefined, { ...changes }) }),
    await signed(),
  ];

/** Each with an event behind it. */
const CHALLENGES: readonly Case[] = [
  {
    name: 'a proof of control that the owner says yes to',
    status: [200, 200],
    options: { onChallenge: ({ authMatches }) => authMatches },
    requests: challenged(),
  },
  {
    name: 'a proof of control that the owner says no to',
    status: [403, 200],
    options: { onChallenge: () => false },
    requests: challenged(),
  },
  { name: 'a proof of control that nobody can be asked about', status: [403, 200], requests: challenged() },
  {
    name: "a proof of control of another seller's",
    status: [403, 200],
    options: { onChallenge: () => true },
    requests: challenged({ seller_agent_url: 'https://other.example/mcp' }),
  },
  {
    name: 'a proof of control whose owner fails',
    status: [503, 200],
    options: { onChallenge: () => Promise.reject(new Error('a secret of ours')) },
    requests: challenged(),
  },
  ...(
    [
      ['say yes to', [200, 200], () => Promise.resolve(true)],
      ['say no to', [403, 200], () => Promise.resolve('event_types is not the same')],
      ['cannot answer', [503, 200], () => Promise.reject(new Fault('store_unavailable', 'a secret of ours'))],
    ] satisfies readonly [string, number[], EventRegistrations['answersChallenge']][]
  ).map(([what, status, answersChallenge]): Case => ({
    name: `a proof of control that registrations ${what}`,
    status,
    options: { registrations: { ofEvent: async () => undefined, answersChallenge } },
    requests: challenged(),
  })),
  {
    name: 'a signed proof of control at a sender registered with HMAC, and an event',
    status: [200, 401],
    eventless: true,
    options: { onChallenge: () => true },
    sender: { auth: { hmac: { secret: 'a-shared-secret-of-32-characters' } } },
    requests: challenged(),
  },
];

/** Under `publicUrl: …/*`: the seller signed this URL, and the door has to hand it over as it is. */
const TARGETS: readonly Case[] = (
  [
    ['a trailing slash', '/webhooks/proto/', []],
    ['%2f, %2F and %7e', '/webhooks/a%2fb%2Fc%7ed', []],
    ['a double slash', '/webhooks//a//b', []],
    ['a query, in its order', '/webhooks/a?z=1&a=2', []],
    ['names that come again in a query', '/webhooks/a?z=1&a=2&z=0', ['exact query']],
    ['a query, in its spelling', '/webhooks/a?b=%2f&a=x%20y&e=&c=%41+', ['exact query']],
    ['an empty query', '/webhooks/a?', ['empty query']],
    ['a quote in the query', "/webhooks/a?q='x'", ['exact query', 'exact target']],
    ['dot segments', '/webhooks/x/../a/./b', ['exact target']],
  ] as const
).map(([name, target, needs]) => ({
  name: `the target keeps ${name}`,
  status: [200],
  needs,
  options: { publicUrl: `https://${AUTHORITY}/webhooks/*` },
  requests: one(undefined, { url: `https://${AUTHORITY}${target}` }),
}));

const METHODS: readonly Case[] = ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'].map((method) => ({
  name: `${method} instead of POST`,
  status: [405],
  requests: one((request) => ({
    ...request,
    method,
    body: /GET|HEAD/.test(method) ? new Uint8Array() : request.body,
  })),
}));

const HTTP: readonly Case[] = [
  {
    name: 'two Content-Type lines',
    status: [415],
    needs: ['repeated lines'],
    requests: one(adding(['Content-Type', 'application/json'])),
  },
  { name: 'no Content-Type', status: [415], requests: one(setting('Content-Type', undefined)) },
  { name: 'gzip', status: [415], requests: one(adding(['Content-Encoding', 'gzip'])) },
  { name: 'identity', status: [200], requests: one(adding(['Content-Encoding', 'identity'])) },
  {
    name: 'two Content-Digest lines',
    status: [401],
    needs: ['repeated lines'],
    requests: one((request) =>
      adding(...request.headers.filter(([name]) => name === 'Content-Digest'))(request),
    ),
  },
  {
    name: 'two Host lines',
    status: [401],
    needs: ['repeated lines'],
    requests: one(adding(['Host', 'other.example'])),
  },
  {
    name: 'a Host that a proxy of ours rewrote',
    status: [503],
    requests: one(setting('Host', 'upstream.internal:8080')),
  },
  {
    name: 'a Host that somebody else wrote',
    status: [200, 401],
    requests: async ({ signed }) => [await signed(), await elsewhere(signed)],
  },
  {
    name: 'another URL that was signed, while nothing has shown that ours is right',
    status: [503, 200, 401],
    requests: async ({ signed }) => [await elsewhere(signed), await signed(), await elsewhere(signed)],
  },
  {
    name: 'a rewritten Host, with hostCheck off',
    status: [200],
    options: { hostCheck: 'off' },
    requests: one(setting('Host', 'upstream.internal:8080')),
  },
  {
    name: ':authority against Host',
    status: [401],
    needs: ['authority'],
    requests: one((request) => ({ ...setting('Host', 'other.example')(request), authority: AUTHORITY })),
  },
  {
    name: ':authority that agrees with Host',
    status: [200],
    needs: ['authority'],
    requests: one((request) => ({ ...request, authority: AUTHORITY })),
  },
  {
    name: 'an absolute-form target of ours',
    status: [200],
    needs: ['absolute-form'],
    requests: one((request) => ({ ...request, target: `http://${AUTHORITY}${request.target}` })),
  },
  {
    name: 'an absolute-form target of another authority',
    status: [401],
    needs: ['absolute-form'],
    requests: one((request) => ({ ...request, target: `http://other.example${request.target}` })),
  },
  {
    name: 'forged X-Forwarded-*, Forwarded and X-Original-URL: ignored',
    status: [200],
    requests: one(
      adding(
        ['X-Forwarded-Host', 'other.example'],
        ['X-Forwarded-Proto', 'http'],
        ['X-Forwarded-Port', '8080'],
        ['X-Forwarded-Prefix', '/other'],
        ['X-Forwarded-For', '127.0.0.1'],
        ['Forwarded', 'host=other.example;proto=http'],
        ['X-Original-URL', '/other'],
        ['X-HTTP-Method-Override', 'GET'],
      ),
    ),
  },
  {
    name: 'forged X-Forwarded-Host for a URL that is not ours',
    status: [401],
    requests: one(adding(['X-Forwarded-Host', AUTHORITY], ['X-Forwarded-Proto', 'https']), {
      url: 'https://other.example/webhooks/proto',
    }),
  },
  {
    name: 'Latin-1 octets in Signature',
    status: [401],
    needs: ['octets'],
    requests: one(setting('Signature', 'sig1=:\u00e9:')),
  },
  { name: 'no signature at all', status: [401], requests: one(undefined, { mistake: 'unsigned' }) },
];

const BODIES: readonly Case[] = [
  { name: 'no length: chunked', status: [200], requests: one((request) => ({ ...request, chunked: true })) },
  {
    name: 'no body',
    status: [401],
    requests: one((request) => ({ ...request, body: new Uint8Array() })),
  },
  {
    name: 'a body of exactly the cap',
    status: [200],
    requests: async ({ signed, seller }) => {
      const payload = JSON.stringify(seller.payloads.tool('completed')).padEnd(MAX_BODY_BYTES);
      return [await signed({ payload })];
    },
  },
  {
    name: 'a body over the cap',
    status: [413],
    requests: async ({ signed, seller }) => {
      const payload = JSON.stringify(seller.payloads.tool('completed')).padEnd(MAX_BODY_BYTES + 1);
      return [await signed({ payload })];
    },
  },
  {
    name: 'characters of every width',
    status: [200],
    requests: async ({ signed, seller }) => [
      await signed({
        payload: seller.payloads.tool('completed', { message: '\ufeffa\u00fc\u20ac\u{1f600}\\u0000' }),
      }),
    ],
  },
  {
    name: 'a tampered body',
    status: [401],
    requests: one(undefined, { mistake: 'tampered-body' }),
  },
  {
    name: 'a name twice',
    status: [401],
    requests: one(undefined, { mistake: 'duplicate-json-key' }),
  },
  {
    name: 'authentic, but no envelope',
    status: [400],
    requests: async ({ signed }) => [await signed({ payload: { task_id: 't', status: 'completed' } })],
  },
];

const EVENTS: readonly Case[] = [
  {
    name: 'a delivery, its replay, and the same event with a fresh nonce',
    status: [200, 401, 200],
    requests: async ({ signed, seller }) => {
      const payload = seller.payloads.tool('completed');
      const first = await signed({ payload });
      return [first, first, await signed({ payload })];
    },
  },
  {
    name: 'another payload under a used key',
    status: [200, 409],
    options: { edition: '3.2' },
    requests: async ({ signed, seller }) => {
      const payload = seller.payloads.tool('completed');
      return [await signed({ payload }), await signed({ payload: { ...payload, message: 'changed' } })];
    },
  },
  {
    name: 'agent transport, and a delivery report',
    status: [200, 200],
    requests: async ({ signed, seller }) => [
      await signed({ payload: seller.payloads.agent('working') }),
      await signed({ payload: seller.payloads.report() }),
    ],
  },
  {
    name: 'a handler that fails',
    status: [503],
    options: { handlers: { other: () => Promise.reject(new Error('a secret of ours')) } },
    requests: one(),
  },
  { name: 'a receiver that has stopped', status: [503], stopped: true, requests: one() },
];

/** Requests that arrive whole: every door answers to them as the receiver itself does. */
export const CASES: readonly Case[] = [
  ...METHODS,
  ...TYPES,
  ...OTHER_TYPES,
  ...TOKENS,
  ...CHALLENGES,
  ...HTTP,
  ...TARGETS,
  ...BODIES,
  ...EVENTS,
];
