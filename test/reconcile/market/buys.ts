import { randomOf } from '../../reliability/processes/random.ts';
import { type Buy, buyOf, type BuyDraft, joined, KINDS } from './plan.ts';
import type { Zone } from './zones.ts';

/* The media buys of a market. */

const at = (text: string): number => Date.parse(text);

const ZONES: readonly Zone[] = ['America/New_York', 'Europe/Berlin', 'UTC'];

/** Daily buys of each seller, one of each drop (or of one), and what happens to some of them. */
export function daily(seed: number, of?: number): readonly Buy[] {
  const random = randomOf(seed);
  let count = 0;
  const buys: Buy[] = [];
  for (const kind of KINDS) {
    for (const drop of of === undefined ? [0, 0.1, 0.5] : [of]) {
      count += 1;
      const draft: BuyDraft = {
        id: `${kind}-${drop}`,
        kind,
        drop,
        zone: ZONES[(count + seed) % 2] ?? 'UTC',
        frequency: 'daily',
        isCut: count % 4 === 0,
        ...happenings(count),
      };
      buys.push(buyOf(random, draft));
    }
  }
  return buys;
}

/** Paused for days, canceled, or away when it is asked. */
function happenings(count: number): Partial<BuyDraft> {
  if (count % 5 === 1) {
    return {
      changes: [
        { at: at('2026-03-07T15:00:00Z'), status: 'paused' },
        { at: at('2026-03-12T09:00:00Z'), status: 'active' },
      ],
    };
  }
  if (count % 5 === 2) return { changes: [{ at: at('2026-03-20T18:00:00Z'), status: 'canceled' }] };
  if (count % 5 === 3)
    return { outage: { start: at('2026-03-15T00:00:00Z'), end: at('2026-03-17T12:00:00Z') } };
  return {};
}

const CHANGED = at('2026-03-09T17:05:00Z');

/**
 * What the buyer changes, joins or cannot ask for: reports become hourly or daily under way, three buys are in one report, a seller
 * counts days in UTC although its product declares a zone, and two tell of delivery for a lifetime alone.
 */
export function unusual(seed: number, drop: number = 0.1): readonly Buy[] {
  const random = randomOf(seed);
  const of = (id: string, more: Partial<BuyDraft>): Buy =>
    buyOf(random, { id, kind: 'honest', zone: 'America/New_York', frequency: 'daily', drop, ...more });
  const together = { kind: 'restarts', zone: 'Europe/Berlin' } as const;
  return [
    of('to-hours', {
      kind: 'never-final',
      becomes: { at: CHANGED, frequency: 'hourly' },
      isWindowed: true,
    }),
    of('to-days', {
      kind: 'gives-up',
      zone: 'Europe/Berlin',
      frequency: 'hourly',
      becomes: { at: CHANGED, frequency: 'daily' },
    }),
    ...joined([
      of('joined-1', together),
      of('joined-2', { ...together, ...happenings(1) }),
      of('joined-3', { ...together, ...happenings(2) }),
    ]),
    of('in-utc', { zone: 'UTC', declared: 'America/New_York' }),
    of('lifetime', { lifetimeOnly: 'declared', drop: Math.max(drop, 0.2) }),
    of('lifetime-refused', { kind: 'gives-up', lifetimeOnly: 'refused', drop: Math.max(drop, 0.2) }),
  ];
}

/** Hours of each seller but the one that reports days alone, one of each drop; each second one can be pulled. */
export function allHours(seed: number, drops: readonly number[]): readonly Buy[] {
  const random = randomOf(seed);
  return KINDS.filter((kind) => kind !== 'drift').flatMap((kind, index) =>
    drops.map((drop, place) =>
      buyOf(random, {
        id: `hours-${kind}-${drop}`,
        kind,
        zone: ZONES[(index + place) % 2] ?? 'UTC',
        frequency: 'hourly',
        drop,
        isWindowed: (index + place) % 2 === 0,
      }),
    ),
  );
}

export function hourly(seed: number): readonly Buy[] {
  const random = randomOf(seed);
  return [
    buyOf(random, {
      id: 'hours',
      kind: 'never-final',
      zone: 'America/New_York',
      frequency: 'hourly',
      drop: 0.1,
      isWindowed: true,
    }),
    buyOf(random, {
      id: 'hours-lost',
      kind: 'gives-up',
      zone: 'Europe/Berlin',
      frequency: 'hourly',
      drop: 0.1,
    }),
  ];
}

/** Months of each seller but the one that reports days alone, of several drops (or of one). */
export function monthly(seed: number, of?: number): readonly Buy[] {
  const random = randomOf(seed);
  return KINDS.filter((kind) => kind !== 'drift').map((kind, index) =>
    buyOf(random, {
      id: `months-${kind}`,
      kind,
      zone: ZONES[index % 2] ?? 'UTC',
      frequency: 'monthly',
      drop: of ?? [0, 0.1, 0.5, 0.5][index] ?? 0,
      isWindowed: index % 2 === 1,
    }),
  );
}

/** A seller that sends nothing, and answers nothing. */
export function silent(): readonly Buy[] {
  const outage = { start: at('2026-02-27T00:00:00Z'), end: at('2026-05-01T00:00:00Z') };
  return [
    buyOf(randomOf(1), { id: 'silent', kind: 'honest', zone: 'UTC', frequency: 'daily', drop: 1, outage }),
  ];
}
