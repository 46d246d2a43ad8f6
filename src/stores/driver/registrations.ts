import type { Backend, Row } from '../port.ts';
import type {
  RegistrationDueRequest,
  RegistrationDueResult,
  RegistrationKind,
  RegistrationRow,
  Store,
} from '../contract.ts';
import { bounded, held, listed, pageOf, planned } from '../rules/registrations.ts';
import { type Ask, jobOf, type Plan, READING } from './job.ts';
import type { Job, Shared } from './round.ts';
import { runJobs } from './round.ts';
import { unpacked } from './row-data.ts';

/** What a row may take in a batch, for what it will is not known before it is planned. */
const ROW_BYTES = 262_144;

type RunPlan = <T>(sender: string, plan: Plan<T>, ask: Ask) => Promise<T>;
type Direct = <T>(work: () => Promise<T>) => Promise<T>;

const rowOf = (row: Row): RegistrationRow => unpacked(row) as RegistrationRow;

/** `Store.registrations`, where the backend finds what is due. */
export function registrationsIn(
  backend: Backend,
  shared: Shared,
  run: RunPlan,
  direct: Direct,
): Pick<Store, 'registrations'> {
  const { registrations } = backend;
  if (!registrations) return {};
  const last: Partial<Record<RegistrationKind, string>> = {};
  return {
    registrations: {
      run: async (sender, plan) => {
        const ask = { isBarrier: () => true, guessesAbsent: false, bytes: ROW_BYTES, scopes: [{ sender }] };
        const came = await run(sender, (rows, now) => planned(rows, sender, plan, now), ask);
        return came.value();
      },
      due: (request) => direct(() => due(backend, registrations, shared, request, last)),
      page: async (query) => {
        const of = listed(query);
        const found = await direct(() => registrations.list({ ...of, limit: of.limit + 1 }));
        const nameOf = ({ scope, id }: Row): { sender: string; id: string } => ({ sender: scope.sender, id });
        return pageOf(found, of, rowOf, nameOf, shared.clock.now());
      },
    },
  };
}

/** Rows that are due are looked for, and those are given that this call was the first to put off. */
async function due(
  backend: Backend,
  registrations: NonNullable<Backend['registrations']>,
  shared: Shared,
  { kind, max, holdMs, senders }: RegistrationDueRequest,
  last: Partial<Record<RegistrationKind, string>>,
): Promise<RegistrationDueResult> {
  const since = performance.now();
  const found = await registrations.due({ kind, max: bounded(max), senders, after: last[kind] ?? '' });
  shared.clock.seen(found.now, since);
  last[kind] = found.rows.at(-1)?.scope.sender ?? last[kind] ?? '';
  const known = { result: { ...found, counts: [], nonces: undefined }, since };
  const groups = new Map<string, Job[]>();
  const given = found.rows.map((one) => {
    const row = rowOf(one);
    return new Promise<RegistrationRow | undefined>((resolve, reject) => {
      const plan: Plan<RegistrationRow | undefined> = (rows, now) => held(rows, row, holdMs, now);
      const group = backend.bySender ? row.sender : '';
      groups.set(group, [...(groups.get(group) ?? []), jobOf(plan, READING, resolve, reject)]);
    });
  });
  for (const jobs of groups.values()) void runJobs(jobs, backend, shared, known);
  // What could not be put off now is found again: it takes nothing from what was.
  const settled = await Promise.allSettled(given);
  const rows = settled.flatMap((one) => (one.status === 'fulfilled' && one.value ? [one.value] : []));
  const failed = settled.find((one) => one.status === 'rejected');
  if (failed && rows.length === 0) throw failed.reason;
  const next = Math.min(
    found.nextDueMs ?? Infinity,
    found.rows.length > 0 ? Math.max(1, Math.ceil(holdMs)) : Infinity,
  );
  return { rows, ...(next !== Infinity && { nextDueMs: next }) };
}
