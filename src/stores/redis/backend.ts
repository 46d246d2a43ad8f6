import { ConfigError, Fault } from '../../errors.ts';
import type { Backend, LoadRequest, LoadResult } from '../port.ts';
import type { StoreIdentity } from '../contract.ts';
import { commit } from './commit.ts';
import { asFault, isAboutOne } from './faults.ts';
import { listed, turns } from './registrations.ts';
import { indexOf, rowName, seenOf } from './rows.ts';
import { due, far, overdueMs, page, sweep } from './senders.ts';
import { openSession, type SessionOptions } from './session.ts';
import type { Session } from './registry.ts';
import { ADVICE } from './settings.ts';

/** `Backend.load`. */
async function load(session: Session, { rows, bodies, counts }: LoadRequest): Promise<LoadResult> {
  const sender = (rows[0] ?? bodies[0])?.scope.sender ?? counts[0]?.sender ?? '';
  // With it comes what others have told of all nonces.
  if (counts.length > 0) await session.registry.register(sender);
  const reply = await session.read('load', sender, {
    names: [...rows, ...bodies].map(rowName),
    bodies: bodies.map(({ id }) => id),
    counts: counts.map(indexOf),
  });
  const { more: _none, isOld: _never, ...seen } = seenOf(sender, counts, reply);
  return { ...seen, nonces: session.counts.seen(sender, { ...seen, untilMs: 0 }) };
}

/** Nothing waits for an answer to another: Redis works on one script while the next one is planned. */
export function redisBackend(given: Omit<SessionOptions, 'identityChanged'>): Backend {
  const listeners = new Set<(identity: StoreIdentity) => void>();
  const identityChanged = (identity: StoreIdentity): void => {
    for (const listener of listeners) listener(identity);
  };
  const options: SessionOptions = { ...given, identityChanged };
  let opening: Promise<Session> | undefined;
  const opened = async (): Promise<Session> => {
    if (!opening) throw new Fault('store_unavailable', 'The Redis store is not open.');
    return opening;
  };
  return {
    name: 'redis',
    lanes: Infinity,
    bySender: true,
    timeoutMs: options.timeoutMs,
    open: async () => {
      opening = openSession(options);
      await opening;
    },
    durability: async () => (await opened()).durability(),
    identity: async () => (await opened()).identity(),
    watchIdentity: (changed) => void listeners.add(changed),
    advice: () => ADVICE,
    clock: async () => (await opened()).clock(),
    commit: async (request) => commit(await opened(), request),
    load: async (request) => load(await opened(), request),
    due: async (request) => due(await opened(), request),
    far: async (request) => far(await opened(), request),
    page: async (query) => page(await opened(), query),
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
