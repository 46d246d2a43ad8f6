import {
  type Altered,
  alteredBy,
  type Given,
  type Headers,
  type MistakeKey,
  type WrongDelivery,
  mistakesFor,
} from '../../src/testing/for-tests.ts';
import type { Signer } from '../auth/rfc9421/support.ts';
import { NOW } from '../auth/rfc9421/support.ts';
import type { WireRequest } from '../adapters/contract/wire.ts';
import type { Random } from '../reliability/processes/random.ts';
import { MAX_BODY_BYTES } from './body-mutations.ts';
import { bodyOf, type Draft } from './draft.ts';
import { EVERYWHERE, SIGNED, type Mutation } from './mutation.ts';
import { REVOKED, SIGNERS, UNFIT, UNKNOWN } from './sellers.ts';

const ofAlgorithm = (alg: Signer['alg']): readonly Signer[] => SIGNERS.filter((signer) => signer.alg === alg);

const KEYS: Readonly<Record<MistakeKey, readonly Signer[]>> = {
  ed25519: ofAlgorithm('ed25519'),
  p256: ofAlgorithm('ecdsa-p256-sha256'),
  other: UNFIT,
  revoked: REVOKED,
};

function givenOf(draft: Draft, random: Random): Given {
  return {
    url: draft.url,
    body: bodyOf(draft),
    keyid: String(draft.signer.jwk['kid']),
    nonce: (draft.parameters['nonce'] ?? '').replaceAll('"', ''),
    now: NOW,
    protocol: 'proto',
    maxBodyBytes: MAX_BODY_BYTES,
    pick: (forms) => random.pick(forms),
  };
}

/** Of several lines, or of what the draft itself does not write. */
const isLate = (name: string, value: Headers[string]): boolean =>
  name === 'Host' || typeof value !== 'string';

function before(draft: Draft, altered: Altered): void {
  const { body, method = draft.method, components = draft.components, params = {}, headers = {} } = altered;
  if (body !== undefined) draft.body = Buffer.from(body as string);
  if (altered.forged) draft.signer = { ...(SIGNERS[0] ?? UNKNOWN), sign: UNKNOWN.sign };
  Object.assign(draft, { method, components });
  Object.assign(draft.signedAs, altered.signedAs);
  for (const [name, value] of Object.entries(params)) draft.parameters[name] = value ?? null;
  for (const [name, value] of Object.entries(headers)) {
    if (!isLate(name, value)) draft.headers[name.toLowerCase()] = String(value);
  }
}

/** As rows name them; a draft has them in lower case. */
const NAMES = Object.fromEntries(
  ['Content-Type', 'Content-Digest', 'Signature-Input', 'Signature'].map((name) => [
    name.toLowerCase(),
    name,
  ]),
);

function headersOf({ headers }: WireRequest): Headers {
  const all: Record<string, string | readonly string[]> = {};
  for (const [given, value] of headers) {
    const name = NAMES[given.toLowerCase()] ?? given;
    const had = all[name];
    all[name] = had === undefined ? value : [had, value].flat();
  }
  return all;
}

const linesOf = (headers: Headers): WireRequest['headers'] =>
  Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((line): readonly [string, string] => [name, line]),
  );

/** The signature's bytes, whichever labels stand beside it. */
const withBytes =
  (change: NonNullable<Altered['signature']>) =>
  (headers: Headers): Headers => ({
    ...headers,
    Signature: String(headers['Signature']).replace(
      /sig1=:([^:]*):/,
      (_, text: string) => `sig1=:${Buffer.from(change(Buffer.from(text, 'base64'))).toString('base64url')}:`,
    ),
  });

function after(request: WireRequest, { headers = {}, signature, sent, sentBody }: Altered): WireRequest {
  const late = Object.entries(headers).filter(([name, value]) => isLate(name, value));
  let all: Headers = { ...headersOf(request), ...Object.fromEntries(late) };
  if (signature && all['Signature'] !== undefined) all = withBytes(signature)(all);
  if (sent) all = sent(all);
  // A client sends no body with GET.
  const body = request.method === 'GET' ? new Uint8Array() : (sentBody?.(request.body) ?? request.body);
  return { ...request, headers: linesOf(all), body };
}

/** What a sender of a legacy scheme can do wrong as well: the request itself, and the body that is authenticated. */
const isOfSignature = ({ check, part }: WrongDelivery): boolean =>
  part === 'scheme' || (check !== undefined && check !== 14);

function mutationOf([name, row]: readonly [string, WrongDelivery]): Mutation {
  const { key } = row;
  return {
    name,
    part: row.part,
    endpoints: isOfSignature(row) ? SIGNED : EVERYWHERE,
    gives: row.code,
    ...(key && { signs: (draft, random) => void (draft.signer = random.pick(KEYS[key])) }),
    before: (draft, random) => before(draft, alteredBy(row, givenOf(draft, random))),
    after: (request, random, draft) => after(request, alteredBy(row, givenOf(draft, random))),
  };
}

/** The table of wrong deliveries. A form that a row leaves open is drawn. */
export const TABLE_MUTATIONS: readonly Mutation[] = mistakesFor('fuzz').map(mutationOf);
