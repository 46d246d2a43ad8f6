import type { Ground, Noted } from './ground.ts';
import type { Row } from './rows.ts';

/** A run in numbers, for who reads its output and for test/README.md. */
export interface Figures {
  readonly store: string;
  readonly mode: string;
  readonly seed: number;
  /** Runs of handlers; after kills, pauses, lapsed leases and failures there are more than events. */
  readonly runs: number;
  /** kill -9 by the driver. */
  readonly kills: number;
  /** Processes that killed themselves, in a handler or at a point of a call. */
  readonly deaths: number;
  readonly starts: number;
  readonly seconds: number;
}

/** @param verdict whose lists are counted. @param began by `performance.now()`. */
export function figuresOf(
  { kind, mode, seed }: Row & { readonly seed: number },
  { fleet }: Pick<Ground, 'fleet'>,
  { ledger }: Noted,
  verdict: object,
  began: number,
): Figures {
  const count = (of: 'run' | 'die'): number => ledger.filter(({ what }) => what === of).length;
  return {
    store: kind,
    mode,
    seed,
    runs: count('run'),
    kills: fleet.kills(),
    deaths: count('die'),
    starts: fleet.starts(),
    ...Object.fromEntries(
      Object.entries(verdict as Record<string, readonly unknown[]>).map(([name, { length }]) => [
        name,
        length,
      ]),
    ),
    seconds: Math.round((performance.now() - began) / 1000),
  };
}
