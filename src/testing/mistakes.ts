// The table of wrong deliveries, made of the files mistakes-*.ts. The fake seller, dev, the probe and the command line
// read it. `scripts/vectors` makes conformance test cases of it.
import { ENVELOPES } from './mistakes-envelope.ts';
import { COMPONENTS, PARAMETER_VALUES, WINDOWS } from './mistakes-profile.ts';
import { BODIES, GUARDED, SCHEMES } from './mistakes-request.ts';
import {
  DIGESTS,
  HOSTS,
  ORDERED,
  OTHER_URLS,
  OTHER_VALUES,
  SIGNATURES,
  UNFIT_KEYS,
  UNKNOWN_KEYS,
} from './mistakes-signature.ts';
import { BYTE_SEQUENCES, NEWER_ITEMS, PARAMETER_SYNTAX, PRESENCE } from './mistakes-syntax.ts';
import { type MistakeUse, type Rows, toldCode, type WrongDelivery } from './mistake-row.ts';

/** The parts of the table: checks 1 to 11 in the order of their numbers, then all other mistakes. */
export const PARTS: readonly Rows[] = [
  PRESENCE,
  PARAMETER_SYNTAX,
  BYTE_SEQUENCES,
  NEWER_ITEMS,
  PARAMETER_VALUES,
  WINDOWS,
  COMPONENTS,
  UNKNOWN_KEYS,
  UNFIT_KEYS,
  SIGNATURES,
  OTHER_URLS,
  OTHER_VALUES,
  HOSTS,
  DIGESTS,
  ORDERED,
  GUARDED,
  SCHEMES,
  BODIES,
  ENVELOPES,
];

/**
 * The table of wrong deliveries: every mistake by its name. The probe, the fake seller, the conformance test cases and
 * the fuzzer use it. If one of them cannot make a row, `by` of the row names the ones that can.
 */
export const WRONG_DELIVERIES: Rows = Object.fromEntries(PARTS.flatMap((part) => Object.entries(part)));

/** Returns the rows that the program `use` can make, with their names, in the order of the table. */
export const mistakesFor = (
  use: MistakeUse,
  rows: Rows = WRONG_DELIVERIES,
): readonly (readonly [name: string, row: WrongDelivery])[] =>
  Object.entries(rows).filter(([, { by }]) => by?.includes(use) ?? true);

/** One entry of `MISTAKES`: a mistake that a sender can make, and the status and code that a receiver must answer. */
export interface Mistake {
  /** A sentence that says what is wrong with the delivery. */
  readonly sends: string;
  /** The HTTP status of a receiver's answer. */
  readonly status: 400 | 401 | 405 | 413 | 415;
  /** The error code: in `WWW-Authenticate` of a 401, in the body of a 400. Other answers have none. */
  readonly code?: string;
}

/**
 * The mistakes that a fake seller can make (`seller.deliver(payload, { mistake })`), by name, with the answer that a
 * receiver must give to each.
 */
export const MISTAKES: Readonly<Record<string, Mistake>> = Object.fromEntries(
  mistakesFor('seller').map(([name, row]) => {
    const code = toldCode(row);
    return [name, { sends: row.sends, status: row.status, ...(code !== undefined && { code }) }];
  }),
);
