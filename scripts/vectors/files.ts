import { type Json, keySet, NOW } from './kit.ts';
import { envelopes, extraction } from './events.ts';
import { bearer, hmac } from './legacy.ts';
import {
  COMPONENTS,
  PARAMETER_VALUES,
  WINDOWS,
  GUARDED,
  BYTE_SEQUENCES,
  NEWER_ITEMS,
  PARAMETER_SYNTAX,
  PRESENCE,
} from '../../src/testing/for-tests.ts';
import { fromTable, type Refused } from './mistakes.ts';
import { NEGATIVE_KEYS } from './negative-keys.ts';
import { POSITIVE, positiveVector } from './positive.ts';
import { sequences } from './sequences.ts';
import { jwksRef, sign } from './sign.ts';
import { canonicalization } from './urls.ts';

function negativeVector(refused: Refused): Json {
  const {
    name,
    description,
    signing,
    signed = sign(name, signing),
    more,
    code,
    check,
    status = 401,
  } = refused;
  const { challenge = status === 401 ? `Signature error="${code}"` : null } = refused;
  return {
    name,
    description,
    reference_now: NOW,
    request: signed.request,
    jwks_ref: jwksRef(signing),
    ...more,
    ...(refused.base === true && { expected_signature_base: signed.base }),
    expected_outcome: {
      success: false,
      error_code: code,
      ...(check !== undefined && { failed_step: check }),
      status,
      www_authenticate: challenge,
    },
  };
}

/** Those of the table that a verifier finds by itself, those that its keys, state or URL are needed for, and newer ones. */
const NEGATIVE: readonly Refused[] = [
  ...fromTable(PRESENCE, PARAMETER_SYNTAX, BYTE_SEQUENCES, PARAMETER_VALUES, WINDOWS, COMPONENTS, GUARDED),
  ...NEGATIVE_KEYS,
  ...fromTable(NEWER_ITEMS),
];

const numbered = (folder: string, vectors: readonly Json[]): (readonly [string, Json])[] =>
  vectors.map((vector, i) => [
    `${folder}/${String(i + 1).padStart(3, '0')}-${String(vector['name'])}.json`,
    vector,
  ]);

/** Every file of `vectors/` that is made here: path → text. The same on every machine, at any time. */
export function vectorFiles(): ReadonlyMap<string, string> {
  const files: readonly (readonly [string, Json])[] = [
    ['keys.json', keySet()],
    ...numbered('positive', POSITIVE.map(positiveVector)),
    ...numbered('negative', NEGATIVE.map(negativeVector)),
    ['canonicalization.json', canonicalization()],
    ['hmac.json', hmac()],
    ['bearer.json', bearer()],
    ['extraction.json', extraction()],
    ['envelope.json', envelopes()],
    ['sequences.json', sequences()],
  ];
  return new Map(files.map(([path, json]) => [path, `${JSON.stringify(json, null, 2)}\n`]));
}
