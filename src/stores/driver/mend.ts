import type { Backend, RowId } from '../backend.ts';
import type { LeaseDueRequest } from '../contract.ts';
import { FAR_MOST, longestWaitMs } from '../rules/inbox.ts';
import type { RecordRow } from '../rules/rows.ts';
import { mend, steppedMs } from '../rules/set-at.ts';
import type { Plan } from './job.ts';
import { jobOf, READING } from './job.ts';
import type { Job, Shared } from './round.ts';
import { runJobs } from './round.ts';
import { unpacked } from './row-data.ts';

/**
 * What a clock that was set back has left in the future is put right, for workers to find (admission.md §4.11).
 * @returns how far it was set back, at least; 0: nothing was found. Ms.
 */
export async function mendFar(backend: Backend, shared: Shared, request: LeaseDueRequest): Promise<number> {
  const { watch, clock } = shared;
  const afterMs = watch.beyondMs(longestWaitMs(request), request.leaseMs);
  if (afterMs === undefined) return 0;
  const since = performance.now();
  const { now, rows } = await backend.far({ afterMs, max: FAR_MOST, senders: request.senders });
  clock.seen(now, since);
  const senders = new Map<string, RowId[]>();
  for (const id of rows) senders.set(id.scope.sender, [...(senders.get(id.scope.sender) ?? []), id]);
  const came = await Promise.all([...senders.values()].map((ids) => mendRows(backend, shared, ids)));
  const mended = came.flat();
  watch.looked(mended.filter(({ isMended }) => isMended).length);
  return Math.max(0, ...mended.map(({ backMs }) => backMs));
}

interface Mended {
  readonly isMended: boolean;
  readonly backMs: number;
}

/** Of one sender. What cannot be put right now is found again by the next look. */
async function mendRows(backend: Backend, shared: Shared, ids: readonly RowId[]): Promise<readonly Mended[]> {
  const since = performance.now();
  const result = await backend.load({ rows: ids, bodies: [], counts: [] });
  const jobs: Job[] = [];
  const asked = new Set(ids.map(({ id }) => id));
  const came = result.rows
    .filter(({ kind, id }) => kind === 'record' && asked.has(id))
    .map((row) => {
      const { sender, key } = unpacked(row) as RecordRow;
      const plan: Plan<Mended> = (rows, now) => {
        const record = rows.record(sender, key, now);
        if (!record) return { isMended: false, backMs: 0 };
        return { backMs: steppedMs(record, now), isMended: mend(rows, record, now) };
      };
      return new Promise<Mended>((resolve) => {
        jobs.push(jobOf(plan, READING, resolve, () => resolve({ isMended: false, backMs: 0 })));
      });
    });
  await runJobs(jobs, backend, shared, { result, since });
  return Promise.all(came);
}
