import { expect, inject, it } from 'vitest';
import { LONG } from '../form.ts';
import { EVERY_ROW, isRow } from '../processes/rows.ts';
import type { MoveBreak } from '../processes/wire.ts';
import { type MovingVerdict, MOVED } from './judge.ts';
import { type Point, POINTS, RENEWAL_POINTS } from './points.ts';
import { run, type RunOptions } from './run.ts';
import { tell } from '../../support/tell.ts';

const FORM = LONG
  ? {
      buys: 1_000,
      sellers: 20,
      kills: 20,
      deaths: 4,
      patienceMs: 20_000,
      callMs: 8_000,
      seed: Date.now() % 2 ** 31,
      deadlineMs: 3_600_000,
    }
  : {
      buys: 12,
      sellers: 2,
      kills: 0,
      deaths: 1,
      patienceMs: 1_500,
      callMs: 2_000,
      seed: 20_261_127,
      deadlineMs: 480_000,
    };

/** `npm run test:rows` has one: each death costs a start. */
const SHORT: readonly Point[] = ['begun'];

/** `npm run test:rows` has one store; the long form has all of them, in both modes. */
const ROWS = LONG ? EVERY_ROW : EVERY_ROW.filter(isRow('SQLite', 'inline'));

it.each(ROWS)(
  'media buys move to another host under load, with kill -9 at every step, $kind, $mode: nothing is lost or done twice, and each has moved or is named',
  async (row) => {
    const points = LONG ? POINTS : SHORT;
    const result = await run({ ...FORM, ...row, points, shared: inject('shared') });
    tell(result.figures);
    expect(result.verdict, JSON.stringify(result.figures)).toEqual(MOVED);
    expect(result.points).toEqual([...points].toSorted());
    expect(result.figures['retired']).toBeGreaterThan(0);
    expect(result.figures['retireRefused']).toBeGreaterThan(0);
  },
  FORM.deadlineMs + 60_000,
);

const RENEWING = { ...FORM, renews: true, patienceMs: 30_000 } as const;

it.each(LONG ? EVERY_ROW.filter(({ mode }) => mode === 'inline') : [])(
  'credentials are renewed under load, with kill -9 at every step, $kind, $mode: no authentic delivery is refused',
  async (row) => {
    const points = [...POINTS, ...RENEWAL_POINTS];
    const result = await run({ ...RENEWING, ...row, points, shared: inject('shared') });
    tell(result.figures);
    expect(result.verdict, JSON.stringify(result.figures)).toEqual(MOVED);
    expect(result.points).toEqual(points.toSorted());
  },
  FORM.deadlineMs + 60_000,
);

/** A judge that finds nothing may be looking at nothing: here are buyers with a mistake, and it has to name each. */
const CALM = {
  kind: 'SQLite',
  mode: 'inline',
  buys: 24,
  sellers: 2,
  kills: 0,
  deaths: 0,
  patienceMs: 4_000,
  callMs: 2_000,
  passes: 1,
  seed: 1,
  deadlineMs: 480_000,
} as const satisfies Partial<RunOptions>;

/** By mistake: what its judge has to find, among other things. */
const MISTAKES: readonly (readonly [MoveBreak, keyof MovingVerdict])[] = [
  ['forgets-at-ack', 'refused'],
  ['retires-early', 'retiredEarly'],
  ['second-key', 'secondKeys'],
  ['trusts-submitted', 'unmoved'],
  ['names-conflicts', 'namedWrongly'],
  ['other-bytes', 'otherBytes'],
  ['no-places', 'tooMany'],
  ['tells-before-durable', 'refused'],
];

it.each(LONG ? MISTAKES : [])(
  'the judge catches a buyer that makes the mistake: %s',
  async (breaks, found) => {
    const renews = breaks === 'tells-before-durable' ? ({ renews: true, patienceMs: 30_000 } as const) : {};
    const { verdict } = await run({ ...CALM, ...renews, breaks, shared: inject('shared') });
    expect(verdict[found]).not.toEqual([]);
  },
  540_000,
);
