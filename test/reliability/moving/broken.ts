import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CallSeller, JsonObject, Registrations } from '../../../src/registrations/index.ts';
import type { RegistrationRow, StoreRegistrations } from '../../../src/stores/index.ts';
import type { MoveBreak } from '../processes/wire.ts';
import { rowsWith, TURNS_ID } from './points.ts';

/* Buyers that are wrong about moves: the judge has to notice each of them. */

type Own = () => Registrations | undefined;

interface Broken {
  readonly call: (call: CallSeller, own: Own) => CallSeller;
  readonly registrations: (registrations: StoreRegistrations) => StoreRegistrations;
}

const SOUND: Broken = { call: (call) => call, registrations: (registrations) => registrations };

const sound = (registrations: StoreRegistrations): StoreRegistrations => ({
  run: (sender, plan) => registrations.run(sender, plan),
  due: (request) => registrations.due(request),
  page: (query) => registrations.page(query),
});

/** Only updates are taken wrongly. */
const ofUpdates =
  (update: (call: CallSeller, own: Own, ...args: Parameters<CallSeller>) => Promise<unknown>) =>
  (call: CallSeller, own: Own): CallSeller =>
  async (...args) =>
    args[1] === 'update_media_buy' ? update(call, own, ...args) : call(...args);

const statusIn = (answer: unknown): unknown =>
  typeof answer === 'object' && answer !== null
    ? (answer as { readonly status?: unknown }).status
    : undefined;

/** After which a seller without places is asked again. Ms. */
const SOON_MS = 100;

/** Longer than a seller takes to begin with what it was told. */
const UNDURABLE_MS = 15_000;

export function breakOf(mistake: MoveBreak | undefined, folder: string): Broken {
  const BREAKS: Readonly<Record<MoveBreak, Partial<Broken>>> = {
    'tells-before-durable': {
      registrations: (registrations) => ({
        ...sound(registrations),
        run: async (sender, plan) => {
          const late: RegistrationRow[] = [];
          const result = await registrations.run(sender, (rows, now) => {
            late.length = 0;
            return plan(
              rowsWith(rows, {
                save: (row) => {
                  if (sender === '' && row.kind === 'route' && row.value.includes('"also"')) late.push(row);
                  else rows.save(toldAtOnce(row, now));
                },
              }),
              now,
            );
          });
          if (late.length > 0) void later(registrations, late);
          return result;
        },
      }),
    },
    // Whoever looks on retires, and makes it.
    'retires-early': {},
    'second-key': {
      call: ofUpdates(async (call, _own, agentUrl, operation, args, how) => {
        try {
          return await call(agentUrl, operation, args, how);
        } catch (error) {
          if ('code' in (error as object)) throw error;
          const again: JsonObject = { ...args, idempotency_key: crypto.randomUUID() };
          return call(agentUrl, operation, again, how);
        }
      }),
    },
    'trusts-submitted': {
      call: ofUpdates(async (call, _own, ...args) => {
        const answer = await call(...args);
        if (statusIn(answer) !== 'submitted') return answer;
        const { media_buy_id: id = '' } = args[2];
        return { status: 'completed', media_buy_id: id, packages: [] };
      }),
    },
    'forgets-at-ack': {
      call: ofUpdates(async (call, _own, ...args) => {
        const answer = await call(...args);
        if (statusIn(answer) === 'completed') mkdirSync(join(folder, 'acknowledged'), { recursive: true });
        return answer;
      }),
    },
    'names-conflicts': {
      call: ofUpdates(async (call, _own, ...args) => {
        try {
          return await call(...args);
        } catch (error) {
          if ((error as { readonly code?: unknown }).code !== 'CONFLICT') throw error;
          const refusal = { code: 'VALIDATION_ERROR', recovery: 'terminal' };
          throw Object.assign(new Error('this update is not taken'), refusal);
        }
      }),
    },
    'other-bytes': {
      call: ofUpdates((call, _own, agentUrl, operation, args, how) =>
        Promise.resolve(call(agentUrl, operation, { ...args, ext: { sent: Date.now() } }, how)),
      ),
    },
    'no-places': {
      registrations: (registrations) => ({
        ...sound(registrations),
        run: (sender, plan) =>
          registrations.run(sender, (rows, now) => {
            let first: string | undefined;
            return plan(
              rowsWith(rows, {
                get: (kind, id) => {
                  const row = rows.get(kind, id);
                  first ??= id;
                  // Who claims looks at the places first; who keeps one, at its step.
                  return row && first === TURNS_ID && id === TURNS_ID
                    ? { ...row, value: JSON.stringify({ live: [] }) }
                    : row;
                },
                // It does not wait for a free one either.
                save: (row) => {
                  const isClaim = first === TURNS_ID && row.id === TURNS_ID && row.dueAt !== null;
                  rows.save(isClaim ? { ...row, dueAt: Math.min(row.dueAt, Math.ceil(now + SOON_MS)) } : row);
                },
              }),
              now,
            );
          }),
      }),
    },
  };
  return { ...SOUND, ...(mistake && BREAKS[mistake]) };
}

/** A renewal of which the seller may be told now. */
function toldAtOnce(row: RegistrationRow, now: number): RegistrationRow {
  if (row.kind !== 'route' || !row.value.includes('"tellFrom"')) return row;
  const value = JSON.parse(row.value) as { readonly next?: object };
  return { ...row, value: JSON.stringify({ ...value, next: { ...value.next, tellFrom: now } }) };
}

async function later(registrations: StoreRegistrations, rows: readonly RegistrationRow[]): Promise<void> {
  await sleep(UNDURABLE_MS);
  await registrations.run('', (step) => {
    for (const row of rows) step.save(row);
  });
}
