import { AUTHORITY } from './draft.ts';
import { adding, lines, SIGNED, type Mutation } from './mutation.ts';
import { noisy } from './noise.ts';
import { NOTIFICATION_TOKEN } from './sellers.ts';

const URLS: readonly Omit<Mutation, 'part'>[] = [
  {
    name: 'another path arrives',
    endpoints: ['prefix'],
    gives: 'webhook_signature_invalid',
    after: (request, random) => ({
      ...request,
      target: random.pick([`${request.target}&`, request.target.replace('/a/', '/b/'), '/webhooks/prefix/']),
    }),
  },
  {
    name: 'a path in another spelling was signed',
    endpoints: ['prefix'],
    gives: 'taken',
    before: (draft, random) =>
      void (draft.url = `https://${AUTHORITY}/webhooks/prefix/${random.pick(['x//y', '%2F?%2f', 'a?b?c'])}`),
  },
  {
    name: 'a path that is not under publicUrl',
    endpoints: ['prefix'],
    gives: 'misconfigured',
    after: (request, random) => ({
      ...request,
      target: random.pick(['/webhooks/prefi', '/webhooks/', '/webhooks/Prefix/a']),
    }),
  },
  {
    name: 'noise in the request target',
    endpoints: ['prefix'],
    gives: 'open',
    after: (request, random) => ({
      ...request,
      target: `/webhooks/prefix/${noisy('a/b?c=d', random).replace(/[^\x21-\x7e]/g, '~')}`,
    }),
  },
];

const HOSTS: readonly Omit<Mutation, 'part' | 'endpoints'>[] = [
  {
    name: 'Host in another spelling',
    gives: 'taken',
    after: lines('host', (_, random) => [random.pick([`${AUTHORITY}:443`, 'Buyer.EXAMPLE'])]),
  },
  {
    name: 'a Host that the request target contradicts',
    gives: 'webhook_target_uri_malformed',
    after: (request) => ({ ...request, target: `https://other.example${request.target}` }),
  },
  {
    name: 'a request target in absolute form',
    gives: 'taken',
    after: (request) => ({ ...request, target: `https://${AUTHORITY}${request.target}` }),
  },
];

const TOKEN_FIELD = 'X-A2A-Notification-Token';

const TOKENS: readonly Omit<Mutation, 'part' | 'endpoints'>[] = [
  { name: 'the notification token', gives: 'taken', after: adding(TOKEN_FIELD, NOTIFICATION_TOKEN) },
  {
    name: 'another notification token',
    gives: 'webhook_token_mismatch',
    after: (request, random) =>
      adding(TOKEN_FIELD, random.pick([`${NOTIFICATION_TOKEN}0`, NOTIFICATION_TOKEN.slice(1), 'x']))(
        request,
        random,
      ),
  },
];

export const BEARER_BESIDE = 'a bearer token beside the signature';

const SCHEMES: readonly Omit<Mutation, 'part' | 'endpoints'>[] = [
  {
    name: BEARER_BESIDE,
    gives: 'taken',
    after: adding('Authorization', 'Bearer a-token'),
  },
];

export const URL_MUTATIONS: readonly Mutation[] = [
  ...URLS.map((one) => ({ part: 'url', ...one }) as const),
  ...HOSTS.map((one) => ({ part: 'host', endpoints: SIGNED, ...one }) as const),
  ...TOKENS.map((one) => ({ part: 'token', endpoints: SIGNED, ...one }) as const),
  ...SCHEMES.map((one) => ({ part: 'scheme', endpoints: SIGNED, ...one }) as const),
];
