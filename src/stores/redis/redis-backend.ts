// The backend on Redis: opens a session (a checked connection), and runs the script for each operation (admission.md
// §9.5).
// Called by `src/stores/redis.ts`.
import { ConfigError, Fault } from '../../shared/errors.ts';
import type { StoreIdentity } from '../store.ts';
import type { Backend, LoadRequest, LoadResult, ListRequest, Row } from '../backend.ts';
import { barrierOf } from './barrier.ts';
import { commit, withAllNonces } from './commit.ts';
import { asFault, isAboutOne } from './redis-client.ts';
import type { Session } from './sender-list.ts';
import { indexOf, letterOf, rowName, rowsOf, seenOf } from './redis-rows.ts';
import { due, overdueMs, turns } from './redis-looks.ts';
import { listCounts, page, sweep } from './redis-senders.ts';
import { openSession, type SessionOptions } from './redis-session.ts';
import { ADVICE } from './redis-settings.ts';

/** Loads rows, for `Backend.load`. */
async function load(session: Session, { rows, bodies, counts }: LoadRequest): Promise<LoadResult> {
  const sender = (rows[0] ?? bodies[0])?.scope.sender ?? counts[0]?.sender ?? '';
  // The first registration of a sender also fetches the numbers of nonces that other processes have published.
  if (counts.length > 0) await session.registry.register(sender);
  const reply = await session.read('load', sender, {
    names: [...rows, ...bodies].map(rowName),
    bodies: bodies.map(({ id }) => id),
    counts: counts.map(indexOf),
  });
  const { rest: _none, isOld: _never, ...seen } = seenOf(sender, counts, reply);
  return withAllNonces(session, sender, seen);
}

/**
 * Makes the backend on Redis. The number of concurrent batches has no limit: Redis runs one script while the next one
 * is planned.
 */
export function redisBackend(sessionOptions: Omit<SessionOptions, 'identityChanged' | 'barrier'>): Backend {
  const listeners = new Set<(identity: StoreIdentity) => void>();
  const identityChanged = (identity: StoreIdentity): void => {
    for (const listener of listeners) listener(identity);
  };
  // The barrier is made here and not by the session, so that it keeps its numbers if a session cannot be opened.
  const barrier = barrierOf(sessionOptions.waitReplicas);
  const options: SessionOptions = { ...sessionOptions, identityChanged, barrier };
  let opening: Promise<Session> | undefined;
  let advice = (): string => ADVICE;
  const opened = async (): Promise<Session> => {
    if (!opening) throw new Fault('store_unavailable', 'The Redis store is not open.');
    return opening;
  };
  return {
    name: 'redis',
    concurrency: Infinity,
    bySender: true,
    timeoutMs: options.timeoutMs,
    open: async () => {
      opening = openSession(options);
      const session = await opening;
      advice = () => session.advice();
    },
    durability: async () => (await opened()).durability(),
    identity: async () => (await opened()).identity(),
    watchIdentity: (changed) => void listeners.add(changed),
    keepDurability: barrier.keep,
    advice: () => advice(),
    clock: async () => (await opened()).clock(),
    commit: async (request) => commit(await opened(), request),
    load: async (request) => load(await opened(), request),
    due: async (request) => due(await opened(), request),
    page: async (query) => page(await opened(), query),
    listCounts: async () => listCounts(await opened()),
    registrations: {
      due: async (request) => turns(await opened(), request),
      list: async (request) => listed(await opened(), request),
    },
    overdueMs: async () => overdueMs(await opened()),
    sweep: async (of, most) => sweep(await opened(), of, most),
    isAboutOne,
    asFault: (error) => (error instanceof ConfigError ? error : asFault(error)),
    close: async () => {
      const session = await opening?.catch(() => undefined);
      await session?.close();
    },
  };
}

/** Lists rows of registrations, for `Backend.registrations.list`. */
export async function listed(
  session: Session,
  { kind, list, sender, limit, after }: ListRequest,
): Promise<readonly Row[]> {
  const known = sender === undefined ? await session.registry.senders() : [sender];
  const rows: Row[] = [];
  for (const of of known.filter((one) => one !== '' || sender === '').toSorted()) {
    if (after && of < after.sender) continue;
    const behind = of === after?.sender ? after.id : '';
    const asked = { kind: letterOf(kind), list: list ?? false, behind, limit: limit - rows.length };
    rows.push(...rowsOf(of, (await session.read('listed', of, asked)) as unknown[]));
    if (rows.length >= limit) break;
  }
  return rows;
}
