import { createHash } from 'node:crypto';
import { FIVE, NOW } from '../auth/rfc9421/support.ts';
import type { Random } from '../reliability/processes/random.ts';
import { bodyOf, draftAt, parameterOf, requestOf, type Draft } from './draft.ts';
import { adding, EVERYWHERE, flipped, lines, SIGNED, without, type Mutation } from './mutation.ts';
import { noisy } from './noise.ts';
import { REVOKED, SIGNERS, UNFIT, UNKNOWN } from './sellers.ts';

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
    name: 'a parameter is missing',
    gives: 'webhook_signature_params_incomplete',
    before: params((_, random) => ({ [random.pick(PARAMETERS)]: null })),
  },
  {
    name: 'a parameter twice',
    gives: 'webhook_signature_header_malformed',
    before: params((draft, random) => {
      const name = random.pick(PARAMETERS);
      return { [name]: `${parameterOf(draft, name)};${name}=${parameterOf(draft, name)}` };
    }),
  },
  {
    name: 'a parameter stands last',
    gives: 'taken',
    before: params((draft, random) => {
      const name = random.pick(PARAMETERS.slice(0, -1));
      return { tag: `${parameterOf(draft, 'tag')};${name}=${parameterOf(draft, name)}`, [name]: null };
    }),
  },
  { name: 'a parameter more', gives: 'taken', before: params(() => ({ more: '1.5' })) },
  {
    name: 'a decimal where an integer belongs',
    gives: 'webhook_signature_header_malformed',
    before: params((draft, random) => {
      const name = random.pick(['created', 'expires'] as const);
      return { [name]: `${parameterOf(draft, name)}.0` };
    }),
  },
  {
    name: 'a token where a string belongs',
    gives: 'webhook_signature_header_malformed',
    before: params((_, random) => ({ [random.pick(PARAMETERS.slice(2))]: 'token' })),
  },
  {
    name: 'a short nonce',
    gives: 'webhook_signature_header_malformed',
    before: params(() => ({ nonce: '"MDEyMzQ1Njc4OWFiY2"' })),
  },
  {
    name: 'another tag',
    gives: 'webhook_signature_tag_invalid',
    before: params((_, random) => ({
      tag: random.pick(['""', '"proto/request-signing/v1"', '"PROTO/webhook-signing/v1"']),
    })),
  },
  {
    name: 'another algorithm',
    gives: 'webhook_signature_alg_not_allowed',
    before: params((_, random) => ({
      alg: random.pick(['"rsa-pss-sha512"', '"none"', '"toString"', '"Ed25519"']),
    })),
  },
  {
    name: "the other key's algorithm",
    gives: 'webhook_signature_key_purpose_invalid',
    before: params(({ signer }) => ({ alg: signer.alg === 'ed25519' ? '"ecdsa-p256-sha256"' : '"ed25519"' })),
  },
  { name: 'expired', gives: 'webhook_signature_window_invalid', before: window(-300, -61) },
  { name: 'created too late', gives: 'webhook_signature_window_invalid', before: window(61, 300) },
  { name: 'valid for too long', gives: 'webhook_signature_window_invalid', before: window(0, 301) },
  { name: 'expires as it was created', gives: 'webhook_signature_window_invalid', before: window(0, 0) },
  {
    name: 'milliseconds',
    gives: 'webhook_signature_window_invalid',
    before: params(() => ({ created: String(NOW * 1000), expires: String(NOW * 1000 + 300) })),
  },
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
    name: 'a component is missing',
    gives: 'webhook_signature_components_incomplete',
    before: (draft, random) => {
      const missing = random.pick(FIVE);
      draft.components = FIVE.filter((name) => name !== missing);
    },
  },
  {
    name: 'a component twice',
    gives: 'webhook_signature_components_incomplete',
    before: (draft, random) => void (draft.components = [...FIVE, random.pick(FIVE)]),
  },
  {
    name: 'a component that is absent, or cannot be covered',
    gives: 'webhook_signature_components_incomplete',
    before: (draft, random) => {
      draft.components = [...FIVE, random.pick(['x-absent', '@status', '@query-param', 'X-Upper'])];
    },
  },
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

const KEY_MUTATIONS = of('key', SIGNED, [
  {
    name: 'a key that nobody published',
    gives: 'webhook_signature_key_unknown',
    before: (draft) => void (draft.signer = UNKNOWN),
  },
  {
    name: 'a revoked key',
    gives: 'webhook_signature_key_revoked',
    before: (draft, random) => void (draft.signer = random.pick(REVOKED)),
  },
  {
    name: 'a key that may not sign webhooks',
    gives: 'webhook_signature_key_purpose_invalid',
    before: (draft, random) => void (draft.signer = random.pick(UNFIT)),
  },
  {
    name: "another's key under a known id",
    gives: 'webhook_signature_invalid',
    before: (draft) => {
      const [known = UNKNOWN] = SIGNERS;
      draft.signer = { ...known, sign: UNKNOWN.sign };
    },
  },
]);

const otherAlphabet = (value: string): string =>
  value.replace(/:.*:/, (base64) =>
    base64.replace(/[-+_/]/g, (sign) => ({ '-': '+', '+': '-', _: '/', '/': '_' })[sign] ?? sign),
  );

/** Zero everywhere: r and s of 0 are no ECDSA signature, R and S of 0 no Ed25519 one that may pass. */
const EXTREMES = [new Uint8Array(64), new Uint8Array(64).fill(255), new Uint8Array(63), new Uint8Array(0)];

const SIGNATURE_MUTATIONS = of('signature', SIGNED, [
  {
    name: 'a bit of the signature',
    gives: 'webhook_signature_invalid',
    after: lines('signature', (value, random) => [flipped(value, random)]),
  },
  {
    name: 'an extreme signature',
    gives: 'webhook_signature_invalid',
    after: lines('signature', (_, random) => [
      `sig1=:${Buffer.from(random.pick(EXTREMES)).toString('base64')}:`,
    ]),
  },
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
    name: 'another label alone',
    gives: 'webhook_signature_header_malformed',
    after: (request, random) =>
      lines(random.pick(['signature', 'signature-input']), (value) => [value.replace('sig1=', 'sig2=')])(
        request,
        random,
      ),
  },
  {
    name: 'a label twice',
    gives: 'webhook_signature_header_malformed',
    after: (request, random) =>
      lines(random.pick(['signature', 'signature-input']), (value, own) =>
        own.pick([[`${value}, ${value}`], [value, value]]),
      )(request, random),
  },
  {
    name: 'one of the two fields is missing',
    gives: 'webhook_signature_header_malformed',
    after: (request, random) => without(random.pick(['signature', 'signature-input']))(request, random),
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
    name: 'another digest alone',
    gives: 'webhook_signature_digest_mismatch',
    before: header('content-digest', digestBy('sha512', 'base64', 'sha-512')),
  },
  {
    name: 'of another body',
    gives: 'webhook_signature_digest_mismatch',
    before: header('content-digest', (draft, random) => flipped(usualDigest(draft), random)),
  },
  {
    name: 'of another length',
    gives: 'webhook_signature_header_malformed',
    before: header('content-digest', digestBy('sha512', 'base64')),
  },
  {
    name: 'twice',
    gives: 'webhook_signature_header_malformed',
    after: lines('content-digest', (value) => [value, value]),
  },
  { name: 'missing', gives: 'webhook_signature_components_incomplete', after: without('content-digest') },
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
const TYPES_REFUSED = [
  'text/plain',
  'application/json; charset=latin1',
  'application/json; x',
  'application/a2a+json',
];

const HTTP_MUTATIONS = [
  ...of('method', EVERYWHERE, [
    {
      name: 'another method',
      gives: 'method_not_allowed',
      before: (draft, random) =>
        void (draft.method = random.pick(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])),
      after: (request) => ({ ...request, body: request.method === 'GET' ? new Uint8Array() : request.body }),
    },
  ]),
  ...of('type', EVERYWHERE, [
    {
      name: 'a content type in another spelling',
      gives: 'taken',
      before: header('content-type', (_, random) => random.pick(TYPES_TAKEN)),
    },
    {
      name: 'another content type',
      gives: 'unsupported_media_type',
      before: header('content-type', (_, random) => random.pick(TYPES_REFUSED)),
    },
    { name: 'no content type', gives: 'unsupported_media_type', after: without('content-type') },
    {
      name: 'two content types',
      gives: 'unsupported_media_type',
      after: lines('content-type', (value) => [value, value]),
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
    {
      name: 'a content encoding',
      gives: 'unsupported_content_encoding',
      after: (request, random) =>
        adding('Content-Encoding', random.pick(['gzip', 'br', 'identity, gzip']))(request, random),
    },
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

export const SIGNED_MUTATIONS: readonly Mutation[] = [
  ...PARAMETER_MUTATIONS,
  ...COMPONENT_MUTATIONS,
  ...KEY_MUTATIONS,
  ...SIGNATURE_MUTATIONS,
  ...DIGEST_MUTATIONS,
  ...HTTP_MUTATIONS,
];
