import type { WireRequest } from '../adapters/contract/wire.ts';
import { randomOf, type Random } from '../reliability/processes/random.ts';
import { BODY_MUTATIONS, REFUSED_PROOF } from './body-mutations.ts';
import { draftAt, ENDPOINTS, requestOf, type Endpoint } from './draft.ts';
import { LEGACY_MUTATIONS, SIGNATURE_FIELD } from './legacy-mutations.ts';
import type { Mutation, Part } from './mutation.ts';
import { SIGNED_MUTATIONS } from './mutations.ts';
import { TABLE_MUTATIONS } from './table-mutations.ts';
import { BEARER_BESIDE, URL_MUTATIONS } from './url-mutations.ts';

/** A delivery, what was done to it, and what it may be answered. */
export interface Input {
  readonly endpoint: Endpoint;
  readonly request: WireRequest;
  readonly mutations: readonly string[];
  /** Codes, or `taken`; undefined where only agreement is asked. */
  readonly expected: ReadonlySet<string> | undefined;
}

/** In this order, because digests are made of bodies and parameters name keys. */
const ORDER: readonly Part[] = [
  'url',
  'method',
  'body',
  'key',
  'type',
  'digest',
  'parameters',
  'components',
  'signature',
  'encoding',
  'host',
  'scheme',
  'token',
  'other',
];

export const ALL: readonly Mutation[] = [
  ...TABLE_MUTATIONS,
  ...SIGNED_MUTATIONS,
  ...BODY_MUTATIONS,
  ...URL_MUTATIONS,
  ...LEGACY_MUTATIONS,
];

/** The row of the table that has neither field of a signature. */
export const UNSIGNED = 'unsigned';

type Gives = Mutation['gives'];

/** What can be done at each endpoint, by what it gives. */
const AT: Readonly<Record<Endpoint, ReadonlyMap<Gives, readonly Mutation[]>>> = {
  signature: byGives('signature'),
  prefix: byGives('prefix'),
  hmac: byGives('hmac'),
  bearer: byGives('bearer'),
};

function byGives(endpoint: Endpoint): ReadonlyMap<Gives, readonly Mutation[]> {
  const here = ALL.filter(({ endpoints }) => endpoints.includes(endpoint));
  return new Map(here.map(({ gives }) => [gives, here.filter((other) => other.gives === gives)]));
}

/** Most inputs have one mutation, so that each check is reached; none and up to three others. */
const AMOUNTS = [0, 1, 1, 1, 1, 1, 1, 2, 2, 3] as const;
/** Most are signed. */
const WEIGHTED: readonly Endpoint[] = [...ENDPOINTS, 'signature', 'signature', 'prefix', 'prefix', 'hmac'];

/** The answer first, or checks that many mutations reach would be most of it. */
function mutationAt(endpoint: Endpoint, random: Random): Mutation {
  const gives = random.pick<Gives | undefined>(['open', 'taken', undefined, undefined, undefined]);
  const wanted =
    gives ?? random.pick([...AT[endpoint].keys()].filter((each) => each !== 'open' && each !== 'taken'));
  return random.pick(AT[endpoint].get(wanted) ?? []);
}

function mutationsAt(endpoint: Endpoint, random: Random): readonly Mutation[] {
  const chosen = Array.from({ length: random.pick(AMOUNTS) }, () => mutationAt(endpoint, random));
  const parts = new Map(chosen.map((mutation) => [mutation.part, mutation]));
  return [...parts.values()].toSorted((a, b) => ORDER.indexOf(a.part) - ORDER.indexOf(b.part));
}

function expectedOf(mutations: readonly Mutation[]): Input['expected'] {
  if (mutations.some(({ gives }) => gives === 'open')) return undefined;
  const has = (wanted: string): boolean => mutations.some(({ name }) => name === wanted);
  // A bearer token alone is another scheme than the sender's (verification.md §2.23).
  const isBearerAlone = has(UNSIGNED) && has(BEARER_BESIDE);
  const wrong: string[] = mutations
    .map(({ name, gives }) => (name === UNSIGNED && isBearerAlone ? 'webhook_mode_mismatch' : gives))
    .filter((gives) => gives !== 'taken');
  if (has(REFUSED_PROOF) && has(SIGNATURE_FIELD)) wrong.push('webhook_signature_header_malformed');
  return new Set(wrong.length === 0 ? ['taken'] : wrong);
}

/** A delivery with these mutations. */
export function inputWith(mutations: readonly Mutation[], endpoint: Endpoint, random: Random): Input {
  const draft = draftAt(endpoint, random);
  for (const { signs } of mutations) signs?.(draft, random);
  for (const { before } of mutations) before?.(draft, random);
  const request = mutations.reduce(
    (made, { after }) => after?.(made, random, draft) ?? made,
    requestOf(draft),
  );
  return { endpoint, request, mutations: mutations.map(({ name }) => name), expected: expectedOf(mutations) };
}

/** The input of that number: the same for the same seed, whatever came before it. */
export function inputOf(seed: number, index: number): Input {
  const random = randomOf(Math.imul(seed, 0x9e3779b1) ^ Math.imul(index, 0x85ebca6b));
  const endpoint = random.pick(WEIGHTED);
  return inputWith(mutationsAt(endpoint, random), endpoint, random);
}
