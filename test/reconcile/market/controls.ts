import type { DeliveryReportEvent } from '../../../src/events/index.ts';
import type { Account, Reconciler } from '../../../src/reconcile/index.ts';
import type { FailRequest, RegistrationRow, Store } from '../../../src/stores/index.ts';
import { completedIn, type Stream, streamIn, streamText } from '../../../src/windows/for-tests.ts';
import { pagesOf } from './run.ts';
import type { Truth } from './truth.ts';

/* Buyers that are wrong. */

const withStream = (row: RegistrationRow, change: (stream: Stream) => Stream): RegistrationRow => ({
  ...row,
  value: streamText(change(streamIn(row.value))),
});

/**
 * A store that claims windows in its steps, as it should, and marks them as had in another step behind the one that completes their
 * event.
 * @param dies whether the process of the nth completion dies in between.
 */
export function marksBeside(store: Store, dies = (n: number): boolean => n % 10 === 0): Store {
  const ids = new Map<string, readonly string[]>();
  let count = 0;
  const each = (sender: string, key: string, change: (row: RegistrationRow) => RegistrationRow | undefined) =>
    store.registrations?.run(sender, (rows) => {
      for (const id of ids.get(key) ?? []) {
        const row = rows.get('stream', id);
        const changed = row && change(row);
        if (changed) rows.save(changed);
      }
    });
  return {
    ...store,
    accept: (request) => {
      const { event } = request;
      if (event?.report?.windows)
        ids.set(
          event.key,
          event.report.windows.map(({ id }) => id),
        );
      return store.accept(request);
    },
    complete: async (request) => {
      const { sender, key } = request;
      const before = new Map<string, RegistrationRow>();
      await each(sender, key, (row) => void before.set(row.id, row));
      const result = await store.complete(request);
      if (before.size === 0) return result;
      await each(sender, key, (row) => withStream(row, () => streamIn((before.get(row.id) ?? row).value)));
      count += 1;
      if (!dies(count)) await each(sender, key, (row) => withStream(row, (is) => completedIn(is, key)));
      return result;
    },
  };
}

/** A store in which three failures of a handler are as good as a success. */
export function threeIsDone(store: Store): Store {
  const failures = new Map<string, number>();
  const fail = async (request: FailRequest): ReturnType<Store['fail']> => {
    const result = await store.fail(request);
    const { sender, key } = request;
    const count = (failures.get(key) ?? 0) + 1;
    failures.set(key, count);
    if (count !== 3) return result;
    await store.registrations?.run(sender, (rows) => {
      const [id = ''] = /^.*?-[0-9.]+(?=-[hdm]\d+-)/.exec(key) ?? [];
      const row = rows.get('stream', id);
      if (row) rows.save(withStream(row, (is) => completedIn(is, key)));
    });
    return result;
  };
  return { ...store, fail };
}

/** A handler of it is given an event of no window while the account is compared, and that comparison fails. Then it is right. */
export function handlesWhileCompared(): (real: Reconciler, truth: Truth) => Promise<readonly Account[]> {
  let isFirst = true;
  return async (real, truth) => {
    if (!isFirst) return pagesOf(real);
    isFirst = false;
    truth.handle(OF_NO_WINDOW, Date.now());
    return [];
  };
}

/** As far as it is judged. */
export const OF_NO_WINDOW = {
  kind: 'delivery-report',
  idempotencyKey: 'of-no-window',
  source: 'webhook',
  sender: 'https://nobody.example/mcp',
  report: { media_buy_deliveries: [{ media_buy_id: 'of-nobody' }] },
} as unknown as DeliveryReportEvent;

/** The account of a buyer that takes its expectations from what came. */
export async function upToArrivals(real: Reconciler, truth: Truth): Promise<readonly Account[]> {
  const account = await real.account();
  const streams = account.streams.map((one) => ({
    ...one,
    missing: one.missing.filter(({ start }) => Date.parse(start) < truth.lastCame(one.mediaBuyId)),
  }));
  return [{ ...account, streams }];
}
