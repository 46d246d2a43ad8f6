import type { WireRequest } from '../adapters/contract/wire.ts';
import type { Random } from '../reliability/processes/random.ts';
import type { Code } from './codes.ts';
import type { Draft, Endpoint } from './draft.ts';

/** Of a delivery; two mutations of one part would undo each other. */
export type Part =
  | 'method'
  | 'type'
  | 'encoding'
  | 'body'
  | 'digest'
  | 'key'
  | 'parameters'
  | 'components'
  | 'signature'
  | 'url'
  | 'host'
  | 'scheme'
  | 'token'
  | 'other';

type Before = (draft: Draft, random: Random) => void;

/** How one delivery is changed, and what it is answered if that is all that is wrong with it. */
export interface Mutation {
  readonly name: string;
  readonly part: Part;
  readonly endpoints: readonly Endpoint[];
  /** `taken`: nothing is wrong with it. `open`: only that every way says the same. */
  readonly gives: Code | 'taken' | 'open';
  /** What is signed. */
  readonly before?: Before | undefined;
  /** What arrives. */
  readonly after?: (request: WireRequest, random: Random) => WireRequest;
}

export const SIGNED: readonly Endpoint[] = ['signature', 'prefix'];
export const EVERYWHERE: readonly Endpoint[] = ['signature', 'prefix', 'hmac', 'bearer'];

type After = NonNullable<Mutation['after']>;

const isNamed = (name: string, given: string): boolean => given.toLowerCase() === name.toLowerCase();

/** Replaces each line of the field by what `change` makes of it: no line, one or more. */
export const lines =
  (name: string, change: (value: string, random: Random) => readonly string[]): After =>
  (request, random) => ({
    ...request,
    headers: request.headers.flatMap(([given, value]) =>
      isNamed(name, given)
        ? change(value, random).map((line): [string, string] => [given, line])
        : [[given, value] as const],
    ),
  });

export const without = (name: string): After => lines(name, () => []);

export const adding =
  (name: string, value: string): After =>
  (request) => ({ ...request, headers: [...request.headers, [name, value]] });

/** Another character of base64 in the place of one that is not the last, whose bits count whole. */
export function flipped(text: string, random: Random): string {
  const digits = [...text.matchAll(/[A-Za-z0-9+/_-]/g)].map(({ index }) => index);
  const start = text.indexOf(':') + 1;
  const inside = digits.filter((at) => at >= start && at < text.lastIndexOf(':') - 4);
  const at = random.pick(inside);
  return `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`;
}
