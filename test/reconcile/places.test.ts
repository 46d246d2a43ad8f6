import { describe, expect, it } from 'vitest';
import { freePlace, SELLER_ROW_ID, takePlace } from '../../src/registrations/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import type { RegistrationRows, StoreRegistrations } from '../../src/stores/index.ts';
import { AGENT } from '../receiver/setup.ts';

/** The rows of a seller in the memory store, and its clock. */
async function seller(row?: object) {
  const store = memoryStore();
  await store.open();
  const rows = store.registrations as StoreRegistrations;
  const run = <T>(plan: (rows: RegistrationRows, now: number) => T): Promise<T> => rows.run(AGENT, plan);
  const known = async (): Promise<Record<string, unknown>> =>
    run((own) => JSON.parse(own.get('route', SELLER_ROW_ID)?.value ?? '{}') as Record<string, unknown>);
  if (row) {
    const value = JSON.stringify(row);
    await run((own) =>
      own.save({
        kind: 'route',
        sender: AGENT,
        id: SELLER_ROW_ID,
        value,
        dueAt: null,
        list: null,
        expiresAt: null,
      }),
    );
  }
  return { run, known };
}

const placeOf = (id: string, until: number) => ({ sender: AGENT, id, until });

describe('the places of a seller', () => {
  it('at most so many at once, polls included; one that is given back is free', async () => {
    const now = Date.now();
    const { run, known } = await seller({ polls: [['watch-1', now + 60_000]], tookMs: 700 });
    const take = (id: string) => run((rows, at) => takePlace(rows, at, placeOf(id, now + 60_000), 2));
    expect(await take('buy-1')).toBe(0);
    // As long as its answers take of late.
    expect(await take('buy-2')).toBe(700);
    await run((rows, at) => freePlace(rows, at, placeOf('buy-1', now + 60_000), undefined));
    expect(await known()).toEqual({ polls: [['watch-1', now + 60_000]], tookMs: 700 });
    expect(await take('buy-2')).toBe(0);
  });

  it('a place whose time is over is free, and so is one further ahead than a lease can be', async () => {
    const now = Date.now();
    const polls = [
      ['watch-1', now - 1],
      ['watch-2', now + 10 * 86_400_000],
    ];
    const { run, known } = await seller({ polls });
    expect(await run((rows, at) => takePlace(rows, at, placeOf('buy-1', now + 60_000), 1))).toBe(0);
    expect(await known()).toEqual({ polls: [['buy-1', now + 60_000]] });
  });

  it('a pause that a clock ahead has set lasts no longer than a pause can', async () => {
    const { run } = await seller({ pausedUntil: Date.now() + 10 * 86_400_000 });
    const waitMs = await run((rows, at) => takePlace(rows, at, placeOf('buy-1', at + 60_000), 1));
    expect(waitMs).toBe(86_400_000);
  });

  it('one that was taken again meanwhile is not given back by who had it before', async () => {
    const now = Date.now();
    const { run, known } = await seller({ polls: [['buy-1', now + 60_000]] });
    await run((rows, at) => freePlace(rows, at, placeOf('buy-1', now + 30_000), undefined));
    expect(await known()).toEqual({ polls: [['buy-1', now + 60_000]] });
  });

  it('a pause keeps all from asking, and is never made shorter', async () => {
    const { run, known } = await seller();
    const now = Date.now();
    const place = placeOf('buy-1', now + 60_000);
    expect(await run((rows, at) => takePlace(rows, at, place, 4))).toBe(0);
    await run((rows, at) => freePlace(rows, at, place, 5000.5));
    await run((rows, at) => freePlace(rows, at, place, 10));
    // A question that was given no pause does not end the pause of another.
    await run((rows, at) => freePlace(rows, at, placeOf('buy-3', now + 60_000), undefined));
    const waitMs = await run((rows, at) => takePlace(rows, at, placeOf('buy-2', now + 60_000), 4));
    expect(waitMs).toBeGreaterThan(10);
    expect(waitMs).toBeLessThanOrEqual(5001);
    const { pausedUntil } = await known();
    expect(Number.isInteger(pausedUntil)).toBe(true);
  });

  it('the task that waits first in the line of polls is looked at at once', async () => {
    const { run } = await seller({ line: { first: 'watch-1', last: 'watch-1' } });
    const later = Date.now() + 3_600_000;
    const watch = { kind: 'watch', sender: AGENT, id: 'watch-1', value: '{}', list: null, expiresAt: null };
    await run((rows) => rows.save({ ...watch, kind: 'watch', dueAt: later }));
    await run((rows, at) => freePlace(rows, at, placeOf('buy-1', at), undefined));
    const dueAt = await run((rows) => rows.get('watch', 'watch-1')?.dueAt);
    expect(dueAt).toBeLessThanOrEqual(Date.now());
    // One that has ended is not.
    await run((rows) => rows.save({ ...watch, kind: 'watch', dueAt: null }));
    await run((rows, at) => freePlace(rows, at, placeOf('buy-1', at), undefined));
    expect(await run((rows) => rows.get('watch', 'watch-1')?.dueAt)).toBeNull();
  });
});
