/*
 * The rows of the table of wrong deliveries, as vectors. The table says what is wrong and what it is answered; nothing of
 * it is judged or signed by `src`: the signer is `sign.ts`.
 */
import {
  type Given,
  type Rows,
  type WrongDelivery,
  alteredBy,
  firstOf,
  mistakesFor,
} from '../../src/testing/for-tests.ts';
import { type Json, KEYS, nonceOf, NOW, URL_GIVEN, utf8 } from './kit.ts';
import type { Case } from './positive.ts';
import { envelope, type Signing, signWithBoth } from './sign.ts';

/** A case that must be refused. */
export interface Refused extends Case {
  readonly code: string;
  readonly check?: number | string;
  /** 401 by default. */
  readonly status?: number;
  /** `Signature error="<code>"` by default where the status is 401. */
  readonly challenge?: string | null;
  /** The verifier gets as far as the base. */
  readonly base?: boolean;
}

const SIGNERS: Readonly<Record<string, (typeof KEYS)[keyof typeof KEYS]>> = KEYS;

function given(name: string, { part }: WrongDelivery): Given {
  return {
    url: URL_GIVEN,
    // Vectors of the body are about one and the same.
    body: utf8(JSON.stringify(envelope(part === 'body' ? 'body' : name))),
    keyid: KEYS.ed25519.kid,
    nonce: nonceOf(name),
    now: NOW,
    protocol: 'proto',
    maxBodyBytes: Number.POSITIVE_INFINITY,
    pick: firstOf,
  };
}

function refusedOf([name, row]: readonly [string, WrongDelivery]): Refused {
  const { forged, ...altered } = alteredBy(row, given(name, row));
  const own = SIGNERS[row.key ?? 'ed25519'] ?? KEYS.ed25519;
  const signing: Signing = {
    ...altered,
    ...(row.key && { key: own }),
    ...(forged && { key: { ...own, sign: KEYS.second.sign } }),
  };
  const reachesBase = row.check !== undefined && row.check >= 7 && altered.sent === undefined;
  return {
    name,
    description: row.sends,
    signing,
    ...(altered.alphabet && { signed: signWithBoth(name, signing) }),
    code: row.code,
    status: row.status,
    ...(row.check !== undefined && { check: row.check }),
    ...(row.status !== 401 && { challenge: null }),
    ...(reachesBase && { base: true }),
  };
}

/** The rows of a part of the table that vectors are made of. */
export const fromTable = (...parts: readonly Rows[]): readonly Refused[] =>
  parts.flatMap((part) => mistakesFor('vectors', part).map(refusedOf));

/** The body and the code of an envelope's row. */
export function envelopesFromTable(
  part: Rows,
): readonly (readonly [id: string, payload: Json, code: string])[] {
  return mistakesFor('vectors', part).map(([name, row]) => {
    const { body } = alteredBy(row, given(name, row));
    return [name, JSON.parse(String(body)) as Json, row.code];
  });
}
