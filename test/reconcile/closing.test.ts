import { describe, expect, it } from 'vitest';
import { finalDueAt, openFor, owing } from '../../src/reconcile/for-tests.ts';
import type { BuyStream } from '../../src/registrations/for-tests.ts';
import { packRuns } from '../../src/windows/for-tests.ts';
import { DAY_MS, HOUR_MS, streamOf } from './kit.ts';

const at = Date.parse;
const FLIGHT = { start: at('2026-03-02T00:00:00Z'), end: at('2026-03-06T00:00:00Z') };
const FIRST = FLIGHT.start / DAY_MS;
const tolerance = { delayMs: HOUR_MS, graceMs: 300_000 };

/** A media buy that was completed, of which nothing is open. */
const ENDED: BuyStream = streamOf({
  terms: [{ from: FLIGHT.start, frequency: 'daily', spans: [FLIGHT] }],
  had: [{ stage: '', windows: { daily: packRuns([[FIRST, FIRST + 4]]) } }],
  status: 'completed',
  endedAt: FLIGHT.end,
  askedAt: FLIGHT.end,
  final: 'received',
});

const DUE = at('2026-03-06T01:05:00Z');

interface Given {
  readonly stream?: Partial<BuyStream>;
  readonly now?: number;
  readonly hasOurs?: boolean;
  readonly isAsked?: boolean;
  readonly states?: Readonly<Record<string, 'done' | 'dead' | 'safe' | 'unsafe'>>;
}

function reason({ stream: more, now = DUE, hasOurs = false, isAsked = false, states = {} }: Given) {
  const stream = { ...ENDED, ...more };
  return openFor(
    stream,
    owing(stream, (key) => states[key], now, tolerance),
    { now, hasOurs, isAsked },
  );
}

const claim = (number: number, key = 'a') => ({ frequency: 'daily' as const, number, stage: '', key });
const had = (days: number) => [{ stage: '', windows: { daily: packRuns([[FIRST, FIRST + days]]) } }];
const totals = { ours: {}, theirs: {}, differs: true, at: 0 };

describe('a stream is open for', () => {
  it.each<readonly [string, Given, ReturnType<typeof openFor>]>([
    ['nothing', {}, undefined],
    ['a status that is not terminal', { stream: { status: 'active' } }, 'media-buy'],
    [
      'a flight that is 30 days over, by a ms',
      { stream: { status: 'active' }, now: FLIGHT.end + 30 * DAY_MS },
      undefined,
    ],
    [
      'one that is not, by a ms',
      { stream: { status: 'active' }, now: FLIGHT.end + 30 * DAY_MS - 1 },
      'media-buy',
    ],
    ['a question', { isAsked: true }, 'media-buy'],
    ['no terms', { stream: { terms: [] } }, 'media-buy'],
    [
      'none, without reports',
      { stream: { terms: [], frequency: null, final: undefined as never } },
      undefined,
    ],
    [
      'none, without reports, at first',
      { stream: { terms: [], frequency: null, status: 'active', since: DUE } },
      'media-buy',
    ],
    [
      'none, without reports, after 400 days',
      { stream: { terms: [], frequency: null, status: 'active', since: DUE }, now: DUE + 400 * DAY_MS },
      undefined,
    ],
    ['a window that is not due yet, though it is had', { now: DUE - 1 }, 'window'],
    ['a window that is missing', { stream: { had: had(3) } }, 'window'],
    [
      'one that cannot be got',
      { stream: { had: had(3), lost: { daily: [FIRST + 3, FIRST + 4] } } },
      undefined,
    ],
    [
      'a window whose event is DEAD',
      { stream: { had: had(3), claims: [claim(FIRST + 3)] }, states: { a: 'dead' } },
      'event',
    ],
    [
      'one whose event waits',
      { stream: { had: had(3), claims: [claim(FIRST + 3)] }, states: { a: 'safe' } },
      'event',
    ],
    [
      'an event of a window that is not owed',
      { stream: { claims: [claim(FIRST + 4)] }, states: { a: 'unsafe' } },
      'event',
    ],
    ['an event that is gone', { stream: { claims: [claim(FIRST)] } }, undefined],
    ['a final that may come', { stream: { final: undefined as never } }, 'final'],
    ['one that is absent', { stream: { final: 'absent' } }, undefined],
    [
      'none, where no reports are asked for any more',
      {
        stream: {
          final: undefined as never,
          terms: [...ENDED.terms, { from: FLIGHT.end - 1, frequency: null, spans: [FLIGHT] }],
        },
      },
      undefined,
    ],
    ['totals', { hasOurs: true }, 'totals'],
    [
      'totals that are asked for again',
      { hasOurs: true, stream: { totals: { tries: 1, nextAt: DUE } } },
      'totals',
    ],
    ['totals that differ', { hasOurs: true, stream: { totals: { compared: totals } } }, undefined],
    ['totals that are given up', { hasOurs: true, stream: { totals: { tries: 9, error: 'no' } } }, undefined],
    [
      'an impairment that is open',
      { stream: { states: [stateOf({}), stateOf({ isEnded: true })] } },
      'state',
    ],
    ['one that has ended', { stream: { states: [stateOf({ isEnded: true })] } }, undefined],
    [
      'none of a seller that does not say that anything has ended',
      { stream: { status: 'active', states: [stateOf({})] }, now: FLIGHT.end + 30 * DAY_MS },
      undefined,
    ],
  ])('%s', (_what, given, expected) => {
    expect(reason(given)).toBe(expected);
  });
});

function stateOf(more: { readonly isEnded?: true }) {
  return { id: 'i', at: 0, keptAt: 0, by: 'webhook' as const, ...more };
}

describe('a final report is missing', () => {
  const due = (more: Partial<BuyStream>): string =>
    new Date(finalDueAt({ ...ENDED, ...more }, tolerance)).toISOString().slice(0, 16);

  it.each<readonly [string, Partial<BuyStream>, string]>([
    ['with the report of the last window', {}, '2026-03-06T01:05'],
    [
      'with that of the day in which it was canceled',
      { endedAt: at('2026-03-04T12:00:00Z') },
      '2026-03-05T01:05',
    ],
    [
      'not before what was sent when it was said to have ended',
      { endedAt: at('2026-03-06T10:00:00Z') },
      '2026-03-06T11:05',
    ],
    [
      'not before what the seller said',
      { later: { after: FLIGHT.end - DAY_MS, until: at('2026-03-07T00:00:00Z') } },
      '2026-03-07T00:05',
    ],
    [
      'a week and an interval later at last',
      { later: { after: FLIGHT.end - DAY_MS, until: at('9999-03-07T00:00:00Z') } },
      '2026-03-14T01:05',
    ],
    [
      'whatever it said of windows behind it',
      { later: { after: FLIGHT.end + 1, until: at('9999-03-07T00:00:00Z') } },
      '2026-03-06T01:05',
    ],
    [
      'with the month, where it reports by months',
      { terms: [{ from: 0, frequency: 'monthly', spans: [FLIGHT] }] },
      '2026-04-01T01:05',
    ],
  ])('%s', (_when, more, expected) => {
    expect(due(more)).toBe(expected);
  });
});
