import { describe, expect, it } from 'vitest';
import { type Facts, FORWARDED, judge, type Sent } from './judge.ts';
import type { Arrival } from './wire.ts';

const TASK = 'task-1';
const at = (step: number): number => Date.parse('2026-01-02T03:04:05Z') + step * 1000;

/** A report, acknowledged and applied. */
const report = (key: string, more: Partial<Sent> = {}): Sent => ({
  key,
  isAcknowledged: true,
  state: 'applied',
  ...more,
});
/** The n-th status of a task. */
const status = (step: number, more: Partial<Sent> = {}): Sent =>
  report(`status-${step}`, { place: { task: TASK, at: at(step) }, ...more });

const arrivalOf = ({ key, place }: Sent, more: Partial<Arrival> = {}): Arrival => ({
  what: 'arrival',
  id: `id of ${key}`,
  key,
  type: place ? 'proto.task.working' : 'proto.deliveryReport.scheduled',
  ...(place && { subject: place.task, time: new Date(place.at).toISOString() }),
  dataHash: `data of ${key}`,
  arrivedAt: 0,
  pid: 1,
  ...more,
});

const [first, second, third] = [status(1), status(2), status(3)] as const;
const one = report('report');
const WELL: Facts = {
  sent: [first, second, one],
  journal: [arrivalOf(first), arrivalOf(one), arrivalOf(second)],
};
const verdictOf = (facts: Partial<Facts>): object => judge({ ...WELL, ...facts });

describe('the judge of serve', () => {
  it('finds nothing where all arrived in order, some of it again under its id', () => {
    expect(verdictOf({})).toEqual(FORWARDED);
    expect(verdictOf({ journal: [...WELL.journal, arrivalOf(second), arrivalOf(one)] })).toEqual(FORWARDED);
    expect(
      verdictOf({ sent: [...WELL.sent, report('nobody knows', { isAcknowledged: false, state: 'absent' })] }),
    ).toEqual(FORWARDED);
  });

  it('calls lost what a sink has answered and not written', () => {
    expect(verdictOf({ journal: WELL.journal.slice(0, 2) })).toEqual({ ...FORWARDED, lost: [second.key] });
    const silent = { ...one, isAcknowledged: false };
    expect(verdictOf({ sent: [silent], journal: [] })).toEqual({ ...FORWARDED, lost: [one.key] });
  });

  it('excuses a status that is stale and never came, where a newer one did', () => {
    const stale = { ...first, state: 'stale' } as const;
    expect(verdictOf({ sent: [stale, second, one], journal: WELL.journal.slice(1) })).toEqual(FORWARDED);
    expect(verdictOf({ sent: [stale, one], journal: WELL.journal.slice(1, 2) })).toEqual({
      ...FORWARDED,
      lost: [first.key],
    });
    // Applied is no excuse.
    expect(verdictOf({ journal: WELL.journal.slice(1) })).toEqual({ ...FORWARDED, lost: [first.key] });
  });

  it('names what is DEAD, and what is not done', () => {
    expect(verdictOf({ sent: [first, second, { ...one, state: 'dead' }] })).toEqual({
      ...FORWARDED,
      dead: [one.key],
    });
    for (const state of ['queued', 'leased', 'absent'] as const) {
      expect(verdictOf({ sent: [first, second, { ...one, state }] })).toEqual({
        ...FORWARDED,
        unfinished: [one.key],
      });
    }
  });

  it('sees a journal in another order: a status that first came after a newer one', () => {
    const sent = [first, second, third];
    const steps = (...order: Sent[]): object =>
      verdictOf({ sent, journal: order.map((step) => arrivalOf(step)) });
    expect(steps(first, third, second)).toEqual({
      ...FORWARDED,
      backwards: [second.key],
      late: [second.key],
    });
    // The newer one came once more, so that it is what the sink knows last.
    expect(steps(first, third, second, third)).toEqual({ ...FORWARDED, backwards: [second.key] });
    const charged = [first, second, { ...third, isCharged: true }];
    const journal = [third, second, first, third].map((step) => arrivalOf(step));
    expect(verdictOf({ sent: charged, journal })).toEqual({ ...FORWARDED, backwards: [first.key] });
    expect(steps(first, second, third, first)).toEqual({ ...FORWARDED, late: [first.key] });
    expect(steps(first, second, first, second, third)).toEqual(FORWARDED);
  });

  it('sees a repeat under another id, one with other data, and an id that is two events’', () => {
    const journal = (more: Partial<Arrival>): Facts['journal'] => [...WELL.journal, arrivalOf(one, more)];
    expect(verdictOf({ journal: journal({ id: 'another' }) })).toEqual({ ...FORWARDED, otherId: [one.key] });
    expect(verdictOf({ journal: journal({ dataHash: 'other' }) })).toEqual({
      ...FORWARDED,
      otherData: [one.key],
    });
    const shared = [arrivalOf(first), arrivalOf(second), arrivalOf(one, { id: `id of ${second.key}` })];
    expect(verdictOf({ journal: shared })).toEqual({ ...FORWARDED, otherId: [`id of ${second.key}`] });
  });

  it('sees attributes of another status, events that nobody sent, and what does not verify', () => {
    const labelled = [...WELL.journal.slice(0, 2), arrivalOf(second, { subject: 'task-2' })];
    expect(verdictOf({ journal: labelled })).toEqual({ ...FORWARDED, mislabelled: [second.key] });
    const unknown = [...WELL.journal, arrivalOf(report('nobody’s'))];
    expect(verdictOf({ journal: unknown })).toEqual({ ...FORWARDED, unknown: ['nobody’s'] });
    const refused = { what: 'refused', error: 'No matching signature found', pid: 1 } as const;
    expect(verdictOf({ journal: [...WELL.journal, refused] })).toEqual({
      ...FORWARDED,
      unverified: [refused.error],
    });
  });
});
