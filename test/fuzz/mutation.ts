import type { MistakePart } from '../../src/testing/for-tests.ts';
import type { WireRequest } from '../adapters/contract/wire.ts';
import type { Random } from '../reliability/processes/random.ts';
import type { Code } from './codes.ts';
import type { Draft, Endpoint } from './draft.ts';

/** Of a delivery; two mutations of one part would undo each other. */
export type Part = MistakePart | 'token' | 'other';

type Before = (draft: Draft, random: Random) => void;

/** How one delivery is changed, and what it is answered if that is all that is wrong with it. */
export interface Mutation {
  readonly name: string;
  readonly part: Part;
  readonly endpoints: readonly Endpoint[];
  /** `taken`: nothing is wrong with it. `open`: only that every way says the same. */
  readonly gives: Code | 'taken' | 'open';
  /** Which key signs: before all else, for parameters name it. */
  readonly signs?: Before;
  /** What is signed. */
  readonly before?: Before | undefined;
  /** What arrives. */
  readonly after?: (request: WireRequest, random: Random, draft: Draft) => WireRequest;
}

export const SIGNED: readonly Endpoint[] = ['signature', 'prefix'];
export const EVERYWHERE: readonly Endpoint[] = ['signature', 'prefix', 'hmac', 'bearer'];

type After = (request: WireRequest, random: Random) => WireRequest;

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
