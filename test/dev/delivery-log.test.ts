import { describe, expect, it } from 'vitest';
import { createDeliveryLog, type DeliveryRow } from '../../src/dev/for-tests.ts';

const MIB = 1024 * 1024;

function logged(bytes: number): Parameters<ReturnType<typeof createDeliveryLog>['add']>[0] {
  const posted = { method: 'POST', url: 'http://127.0.0.1/', headers: {}, body: new Uint8Array(bytes) };
  return { posted, row: { at: 0, state: 'sending', what: 'completed (tool)' } };
}

describe('the deliveries that are kept', () => {
  it('are the latest 1,000, a hundred a page', () => {
    const log = createDeliveryLog(() => undefined);
    for (let i = 0; i < 1_200; i += 1) log.add(logged(1));
    expect(log.get(200)).toBeUndefined();
    expect(log.get(201)?.row.id).toBe(201);
    const ids: number[] = [];
    let before: number | undefined;
    do {
      const page = log.page(before);
      expect(page.rows.length).toBeLessThanOrEqual(100);
      ids.push(...page.rows.map(({ id }) => id));
      before = page.before;
    } while (before !== undefined);
    expect(ids).toEqual(Array.from({ length: 1_000 }, (_, index) => 1_200 - index));
  });

  it('have 64 MiB together: the oldest go, and one that changes stays in its place', () => {
    const changed: DeliveryRow[] = [];
    const log = createDeliveryLog((row) => changed.push(row));
    for (let i = 0; i < 80; i += 1) log.add(logged(MIB));
    expect(log.get(16)).toBeUndefined();
    expect(log.get(18)?.row.id).toBe(18);
    expect(log.change(16, { row: { status: 200 } })).toBeUndefined();
    const answer = {
      outcome: 'success',
      status: 200,
      headers: {},
      body: 'x'.repeat(65_536),
      cut: true,
    } as const;
    for (let id = 20; id <= 80; id += 1) log.change(id, { answer, row: { state: 'answered', status: 200 } });
    expect(log.get(18)).toBeUndefined();
    expect(log.get(80)?.row).toMatchObject({ state: 'answered', status: 200 });
    expect(changed.at(-1)).toEqual(log.get(80)?.row);
    expect(log.page(undefined).rows[0]?.id).toBe(80);
  });

  it('have 1 MiB of a body, and the latest 20 tellings', () => {
    const log = createDeliveryLog(() => undefined);
    const { row } = log.add(logged(MIB + 1));
    expect(log.get(row.id)).toMatchObject({ bytes: MIB + 1 });
    expect(log.get(row.id)?.posted.body.byteLength).toBe(MIB);
    for (let i = 0; i < 30; i += 1) {
      log.change(row.id, { told: { hook: 'alarm', code: 'dead', message: String(i) } });
    }
    const { tellings = [] } = log.get(row.id) ?? {};
    expect(tellings).toHaveLength(20);
    expect(tellings.at(-1)).toMatchObject({ message: '29' });
  });
});
