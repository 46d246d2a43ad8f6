import { createHash } from 'node:crypto';
import { FIVE, NOW } from '../auth/rfc9421/support.ts';
import type { Random } from '../reliability/processes/random.ts';
import { bodyOf, draftAt, parameterOf, requestOf, type Draft } from './draft.ts';
import { adding, EVERYWHERE, lines, SIGNED, type Mutation } from './mutation.ts';
import { noisy } from './noise.ts';

type Named = Omit<Mutation, 'part' | 'endpoints'>;

const of = (part: Mutation['part'], endpoints: Mutation['endpoints'], named: readonly Named[]): Mutation[] =>
  named.map((one) => ({ part, endpoints, ...one }));

/** Parameters that are signed, by their serialized values. */
const params =
  (change: (draft: Draft, random: Random) => Readonly<Record<string, string | null>>): Mutation['before'] =>
  (draft, random) =>
    void Object.assign(draft.parameters, change(draft, random));

const header =
  (name: string, value: (draft: Draft, random: Random) => string): Mutation['before'] =>
  (draft, random) =>
    void Object.assign(draft.headers, { [name]: value(draft, random) });

const PARAMETERS = ['created', 'expires', 'nonce', 'keyid', 'alg', 'tag'] as const;

const window =
  (created: number, expires: number): Mutation['before'] =>
  ({ parameters }) =>
    void Object.assign(parameters, { created: String(NOW + created), expires: String(NOW + expires) });

const PARAMETER_MUTATIONS = of('parameters', SIGNED, [
  {
    name: 'a parameter stands last',
    gives: 'taken',
    before: params((draft, random) => {
      const name = random.pick(PARAMETERS.slice(0, -1));
      return { tag: `${parameterOf(draft, 'tag')};${name}=${parameterOf(draft, name)}`, [name]: null };
    }),
  },
  { name: 'a parameter more', gives: 'taken', before: params(() => ({ more: '1.5' })) },
  { name: 'just not expired', gives: 'taken', before: window(-300, -60) },
  { name: 'just created', gives: 'taken', before: window(60, 360) },
  {
    name: 'noise in a parameter',
    gives: 'open',
    before: params((draft, random) => {
      const name = random.pick(PARAMETERS);
      return { [name]: noisy(parameterOf(draft, name), random).replace(/[^\t\x20-\x7e]/g, '?') };
    }),
  },
]);

const COMPONENT_MUTATIONS = of('components', SIGNED, [
  {
    name: 'components in another order',
    gives: 'taken',
    before: (d) => void (d.components = FIVE.toReversed()),
  },
  {
    name: 'components more',
    gives: 'taken',
    before: (draft) => {
      draft.components = [...FIVE, '@scheme', '@path', '@query', '@request-target', 'x-more'];
      draft.headers['x-more'] = 'more';
    },
  },
  {
    name: 'noise in the list',
    gives: 'open',
    before: (draft, random) => {
      const text = noisy(FIVE.join(' '), random).replace(/[^\x20-\x7e]/g, '?');
      draft.components = text.split(' ');
    },
  },
]);

const otherAlphabet = (value: string): string =>
  value.replace(/:.*:/, (base64) =>
    base64.replace(/[-+_/]/g, (sign) => ({ '-': '+', '+': '-', _: '/', '/': '_' })[sign] ?? sign),
  );

const SIGNATURE_MUTATIONS = of('signature', SIGNED, [
  {
    name: 'the signature of another delivery',
    gives: 'webhook_signature_invalid',
    after: (request, random) => {
      const { headers } = requestOf(draftAt('signature', random));
      const other = headers.find(([name]) => name === 'signature')?.[1] ?? '';
      return lines('signature', () => [other])(request, random);
    },
  },
  {
    name: 'the other alphabet',
    gives: 'taken',
    after: lines('signature', (value) => [otherAlphabet(value)]),
  },
  {
    name: 'no padding',
    gives: 'taken',
    after: lines('signature', (value) => [value.replace(/=+:$/, ':')]),
  },
  {
    name: 'another label before it',
    gives: 'taken',
    after: (request, random) => {
      const first = lines('signature', (value) => [`other=:AAAA:, ${value}`])(request, random);
      return lines('signature-input', (value) => [`other=("@method");x=1, ${value}`])(first, random);
    },
  },
  {
    name: 'noise in a field of the signature',
    gives: 'open',
    after: (request, random) =>
      lines(random.pick(['signature', 'signature-input', 'content-digest']), (value) => [
        noisy(value, random),
      ])(request, random),
  },
]);

const digestBy =
  (algorithm: string, encoding: 'base64' | 'base64url', label = 'sha-256') =>
  (draft: Draft): string =>
    `${label}=:${createHash(algorithm).update(bodyOf(draft)).digest(encoding)}:`;

const usualDigest = digestBy('sha256', 'base64');

const DIGEST_MUTATIONS = of('digest', SIGNED, [
  { name: 'base64 in the other form', gives: 'taken', before: header('content-digest', usualDigest) },
  {
    name: 'base64 without padding',
    gives: 'taken',
    before: header('content-digest', (draft) => usualDigest(draft).replace(/=:$/, ':')),
  },
  {
    name: 'base64url with padding',
    gives: 'taken',
    before: header('content-digest', (draft) => `${digestBy('sha256', 'base64url')(draft).slice(0, -1)}=:`),
  },
  {
    name: 'beside another digest',
    gives: 'taken',
    before: header(
      'content-digest',
      (draft) => `${digestBy('sha512', 'base64', 'sha-512')(draft)}, ${usualDigest(draft)}`,
    ),
  },
  {
    name: 'noise in it',
    gives: 'open',
    before: header('content-digest', (draft, random) =>
      noisy(usualDigest(draft), random)
        .replace(/[^\x20-\x7e]/g, '?')
        .trim(),
    ),
  },
]);

const TYPES_TAKEN = ['Application/JSON', 'application/json; charset="UTF-8"', 'application/json;;x=y ;'];

const HTTP_MUTATIONS = [
  ...of('type', EVERYWHERE, [
    {
      name: 'a content type in another spelling',
      gives: 'taken',
      before: header('content-type', (_, random) => random.pick(TYPES_TAKEN)),
    },
    {
      name: 'noise in the content type',
      gives: 'open',
      before: header('content-type', (_, random) =>
        noisy('application/json; charset=utf-8', random)
          .replace(/[^\x20-\x7e]/g, '?')
          .trim(),
      ),
    },
  ]),
  ...of('encoding', EVERYWHERE, [
    { name: 'identity', gives: 'taken', after: adding('Content-Encoding', 'Identity') },
  ]),
  ...of('other', EVERYWHERE, [
    {
      name: 'fields of proxies',
      gives: 'taken',
      after: (request, random) =>
        adding('X-Forwarded-Host', 'other.example')(adding('Forwarded', 'host=o')(request, random), random),
    },
  ]),
] satisfies readonly Mutation[];

/** What is right though it looks otherwise, and noise; what is wrong stands in the table, but for another delivery's signature. */
export const SIGNED_MUTATIONS: readonly Mutation[] = [
  ...PARAMETER_MUTATIONS,
  ...COMPONENT_MUTATIONS,
  ...SIGNATURE_MUTATIONS,
  ...DIGEST_MUTATIONS,
  ...HTTP_MUTATIONS,
];
