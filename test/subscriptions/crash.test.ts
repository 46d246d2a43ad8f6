import { describe, expect, inject, it } from 'vitest';
import { inThisForm, LONG } from '../reliability/form.ts';
import type { Kind } from '../reliability/processes/stores.ts';
import { apart, type StartBuyer, within } from './buyer/processes.ts';
import { type Sweep, sweep, type SweepOptions } from './crash/sweep.ts';
import type { SubscriptionSeller } from './seller/seller.ts';
import { inWorld } from './world.ts';
import { tell } from '../support/tell.ts';

const SUBSCRIBE: Sweep = { change: 'subscribe', scheme: 'signature', of: 'account' };
const CHANGE: Sweep = { change: 'change of types', scheme: 'HMAC-SHA256', of: 'account' };
const UNSUBSCRIBE: Sweep = { change: 'unsubscribe', scheme: 'signature', of: 'account' };
const AGENT: Sweep = { change: 'subscribe', scheme: 'HMAC-SHA256', of: 'agent' };
const BESIDE: Sweep = { ...SUBSCRIBE, hasLegacyOther: true };

const SWEEPS: readonly Sweep[] = [
  SUBSCRIBE,
  CHANGE,
  UNSUBSCRIBE,
  AGENT,
  BESIDE,
  { ...SUBSCRIBE, scheme: 'HMAC-SHA256' },
  { ...CHANGE, scheme: 'signature' },
  { ...UNSUBSCRIBE, scheme: 'HMAC-SHA256' },
  { ...AGENT, scheme: 'signature' },
  { ...AGENT, change: 'change of types' },
  { ...AGENT, change: 'unsubscribe' },
];
const KINDS: readonly Kind[] = ['SQLite', 'Postgres', 'MySQL', 'Redis'];

interface Row {
  readonly kind: Kind;
  readonly of: Sweep;
  /** `kill -9` of a process of its own; else one within this process, on handles of its own, goes no further. */
  readonly isApart?: true;
  /** Where it dies: at each step by default. */
  readonly dies?: SweepOptions;
}

/** The first is in the short form. */
const SOME: readonly Row[] = [
  { kind: 'SQLite', of: SUBSCRIBE },
  { kind: 'SQLite', of: CHANGE, dies: { every: 2 } },
  { kind: 'SQLite', of: AGENT, dies: { every: 3 } },
  { kind: 'SQLite', of: UNSUBSCRIBE },
  { kind: 'SQLite', of: BESIDE },
  { kind: 'SQLite', of: CHANGE, dies: { every: 5, isOtherToFinish: true } },
  { kind: 'Postgres', of: CHANGE, dies: { every: 5, first: 2 } },
  { kind: 'MySQL', of: AGENT, dies: { every: 5, first: 3 } },
  { kind: 'Redis', of: UNSUBSCRIBE, dies: { every: 5, first: 1 } },
  { kind: 'Postgres', of: SUBSCRIBE, isApart: true, dies: { every: 14, first: 9 } },
];
const SHORT = 1;

/** Each step of each change on each store, by both kinds of death. */
const EACH: readonly Row[] = KINDS.flatMap((kind) =>
  SWEEPS.flatMap((of): readonly Row[] => [
    { kind, of },
    { kind, of, dies: { isOtherToFinish: true } },
    { kind, of, isApart: true },
  ]),
);

function nameOf({ kind, of: { change, scheme, of, hasLegacyOther }, isApart, dies }: Row): string {
  return [
    `${kind}: ${change} of an ${of} by ${scheme}`,
    ...(hasLegacyOther ? ['beside an entry with credentials'] : []),
    isApart ? 'kill -9' : 'within one process',
    dies?.isOtherToFinish ? 'another process finishes' : 'it is started again',
  ].join(', ');
}

const LIMIT_MS = 3_600_000;

describe('a process that dies in a change of a set', () => {
  const rows = LONG ? EACH : inThisForm(SOME, (_row, at) => at < SHORT);
  it.each(rows.map((row) => [nameOf(row), row] as const))(
    '%s',
    async (name, { kind, of, isApart, dies = {} }) => {
      const shared = inject('shared');
      const startBy = ({ direct }: SubscriptionSeller): StartBuyer =>
        isApart ? apart(shared) : within(direct);
      const { wrong, steps, ...figures } = await inWorld({ kind, shared, startBy }, (world) =>
        sweep(world, of, dies),
      );
      tell({ name, steps: steps.length, ...figures });
      expect(wrong).toEqual([]);
      expect(steps.length).toBeGreaterThan(10);
      const { every = 1, first = 0 } = dies;
      expect(figures.deaths).toBe(Math.ceil((steps.length - first) / every));
    },
    LIMIT_MS,
  );
});
