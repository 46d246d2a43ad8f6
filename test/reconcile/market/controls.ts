import type { Account, Reconciler } from '../../../src/reconcile/index.ts';
import type {
  CompleteRequest,
  FailRequest,
  RegistrationRow,
  Store,
  WindowClaim,
} from '../../../src/stores/index.ts';
import { claimedIn, completedIn, type Stream, streamIn, streamText } from '../../../src/windows/for-tests.ts';
import type { Truth } from './truth.ts';

/* Buyers that are wrong. */

const withStream = (row: RegistrationRow, change: (stream: Stream) => Stream): RegistrationRow => ({
  ...row,
  value: streamText(change(streamIn(row.value))),
});

/** A store whose windows are not marked in its steps but in others behind them, before which its process dies now and then. */
export function marksBeside(store: Store): Store {
  const windows = new Map<string, readonly WindowClaim[]>();
  let count = 0;
  const complete = async (request: CompleteRequest): ReturnType<Store['complete']> => {
    const result = await store.complete(request);
    const { sender, key } = request;
    if (!windows.has(key)) return result;
    count += 1;
    if (count % 10 === 0) return result;
    await store.registrations?.run(sender, (rows, now) => {
      for (const window of windows.get(key) ?? []) {
        const row = rows.get('stream', window.id);
        if (!row) continue;
        const step = { now, isThere: () => true };
        rows.save(withStream(row, (is) => completedIn(claimedIn(is, { ...window, key }, step).stream, key)));
      }
    });
    return result;
  };
  const accept: Store['accept'] = (request) => {
    const { event } = request;
    if (!event?.report?.windows || event.report.isPulled) return store.accept(request);
    const { windows: claimed, ...report } = event.report;
    windows.set(event.key, claimed);
    return store.accept({ ...request, event: { ...event, report } });
  };
  return { ...store, accept, complete };
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

/** The account of a buyer that takes its expectations from what came. */
export async function upToArrivals(real: Reconciler, truth: Truth): Promise<readonly Account[]> {
  const account = await real.account();
  const streams = account.streams.map((one) => ({
    ...one,
    missing: one.missing.filter(({ start }) => Date.parse(start) < truth.lastCame(one.mediaBuyId)),
  }));
  return [{ ...account, streams }];
}
