import { NOW } from '../auth/rfc9421/support.ts';
import { adding, lines, without, type Mutation } from './mutation.ts';
import { noisy } from './noise.ts';

const SIGNATURE = 'x-proto-signature';
const TIMESTAMP = 'x-proto-timestamp';

const ofHmac: readonly Omit<Mutation, 'part' | 'endpoints'>[] = [
  {
    name: 'a digit of the HMAC',
    gives: 'webhook_signature_invalid',
    after: lines(SIGNATURE, (value) => [value.replace(/.$/, (last) => (last === '0' ? '1' : '0'))]),
  },
  {
    name: 'an HMAC in another form',
    gives: 'webhook_signature_invalid',
    after: lines(SIGNATURE, (value, random) =>
      random.pick([[value.toUpperCase()], [value.slice(7)], [`${value}0`], [value.replace('256', '512')]]),
    ),
  },
  {
    name: 'a field of HMAC is missing',
    gives: 'webhook_signature_header_malformed',
    after: (request, random) => without(random.pick([SIGNATURE, TIMESTAMP]))(request, random),
  },
  {
    name: 'a field of HMAC twice',
    gives: 'webhook_signature_header_malformed',
    after: (request, random) =>
      lines(random.pick([SIGNATURE, TIMESTAMP]), (value, own) =>
        own.pick([[value, value], [`${value}, ${value}`]]),
      )(request, random),
  },
  {
    name: 'a timestamp that is far away',
    gives: 'webhook_signature_window_invalid',
    after: lines(TIMESTAMP, (_, random) => [
      String(random.pick([NOW - 301, NOW + 301, NOW * 1000, 0, '9'.repeat(400)])),
    ]),
  },
  {
    name: 'another timestamp',
    gives: 'webhook_signature_invalid',
    after: lines(TIMESTAMP, (_, random) => [String(random.pick([NOW - 300, NOW + 300, NOW + 1]))]),
  },
  {
    name: 'a timestamp that is not a number of seconds',
    gives: 'webhook_signature_header_malformed',
    after: lines(TIMESTAMP, (value, random) => [random.pick([`-${value}`, `${value}.0`, '', '0x10', '1e9'])]),
  },
  {
    name: 'the body of another delivery',
    gives: 'webhook_signature_invalid',
    after: (request) => ({ ...request, body: Buffer.concat([Buffer.from(' '), request.body.subarray(1)]) }),
  },
  {
    name: 'noise in a field of HMAC',
    gives: 'open',
    after: (request, random) =>
      lines(random.pick([SIGNATURE, TIMESTAMP]), (value) => [noisy(value, random)])(request, random),
  },
];

const ofBearer: readonly Omit<Mutation, 'part' | 'endpoints'>[] = [
  {
    name: 'another token',
    gives: 'webhook_signature_invalid',
    after: lines('authorization', (value) => [`${value}0`]),
  },
  {
    name: 'the scheme in another case',
    gives: 'taken',
    after: lines('authorization', (value) => [value.replace('Bearer', 'bEARER')]),
  },
  {
    name: 'no token',
    gives: 'webhook_signature_header_malformed',
    after: lines('authorization', (_, random) => random.pick([[], ['Bearer'], ['Basic dXNlcjpwYXNz'], ['']])),
  },
  {
    name: 'noise in the token',
    gives: 'open',
    after: lines('authorization', (value, random) => [noisy(value, random)]),
  },
];

/** The sender of a proof of control may sign it (verification.md §7.9), and then it is its signature that is read. */
export const SIGNATURE_FIELD = 'a field of RFC 9421';

const signatureFields: Mutation = {
  name: SIGNATURE_FIELD,
  part: 'scheme',
  endpoints: ['hmac', 'bearer'],
  gives: 'webhook_mode_mismatch',
  after: (request, random) =>
    adding(random.pick(['Signature', 'Signature-Input']), 'sig1=:AAAA:')(request, random),
};

export const LEGACY_MUTATIONS: readonly Mutation[] = [
  ...ofHmac.map((one) => ({ part: 'signature', endpoints: ['hmac'], ...one }) as const),
  ...ofBearer.map((one) => ({ part: 'signature', endpoints: ['bearer'], ...one }) as const),
  signatureFields,
];
