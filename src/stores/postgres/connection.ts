import { Fault } from '../../errors.ts';
import type { Batches } from './batches.ts';
import { batchesOf } from './batches.ts';
import type { PgPool } from './client.ts';
import { poolMax, survive } from './client.ts';
import { asFault } from './faults.ts';
import type { Batch, Server, Sweep } from './server.ts';
import type { Settings } from './settings.ts';
import { adviceOf, checkSchema, checkSettings } from './settings.ts';
import { slotsOf } from './slots.ts';

/** The store's way to the server, from `open` to `close`. */
export interface Connection {
  readonly open: () => Promise<void>;
  /** @throws Fault `store_unavailable` before `open` and after `close`. */
  readonly current: () => { readonly server: Server; readonly batches: Batches };
  /** Keeps `close` waiting until the work is done. */
  readonly during: <T>(work: () => Promise<T>) => Promise<T>;
  /** @throws ConfigError where the schema has changed meanwhile, or the role's rights. */
  readonly readSettings: () => Promise<Settings>;
  /** For the owner, from the settings read last. */
  readonly advice: () => string;
  readonly close: () => Promise<void>;
}

export interface ConnectionOptions {
  readonly pool: PgPool;
  readonly server: Server;
  readonly schema: string;
  readonly timeoutMs: number;
  readonly random: () => number;
}

/** Batches under way at once: one is prepared while another is written to disk, and the pool is the owner's too. */
const LANES = 2;

type State = 'not open yet' | 'open' | 'closed';

export function connectionOf(options: ConnectionOptions): Connection {
  const { pool, server } = options;
  const batches = lanesOf(options);
  const outside = slotsOf(Infinity);
  const look = lookerOf(server);
  let state: State = 'not open yet';
  let endSurvival: (() => void) | undefined;
  const opening = onceDone(async () => {
    // A connection that breaks ends the process where nobody listens; the pool replaces it by itself.
    endSurvival ??= survive(pool);
    const settings = await look.read();
    checkSettings(settings, options.schema);
    server.setSync(settings.synchronousCommit);
    if (state === 'not open yet') state = 'open';
  });
  const current = (): ReturnType<Connection['current']> => {
    if (state === 'open') return { server, batches };
    throw new Fault('store_unavailable', `The Postgres store is ${state}.`);
  };
  return {
    open: async () => {
      if (state === 'closed') current();
      await opening();
    },
    current,
    during: (work) => outside.run(work),
    readSettings: async () => {
      current();
      const settings = await look.read();
      checkSchema(settings, options.schema);
      return settings;
    },
    advice: look.advice,
    close: async () => {
      state = 'closed';
      endSurvival?.();
      await Promise.all([batches.idle(), outside.idle()]);
    },
  };
}

/** Runs until it has succeeded; several callers share a run. */
function onceDone(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= run().catch((error: unknown) => {
      running = undefined;
      throw error;
    });
    return running;
  };
}

function lookerOf(server: Server): { read: () => Promise<Settings>; advice: () => string } {
  let seen: Settings | undefined;
  return {
    read: async () => {
      try {
        seen = await server.readSettings();
        return seen;
      } catch (error) {
        throw asFault(error);
      }
    },
    advice: () => (seen ? adviceOf(seen) : ''),
  };
}

/** Kinds of rows that expire (`webhook_purge`), swept in turn. */
const KINDS = 4;

/**
 * Batches, and calls, between two sweeps at most. No whole number (5 times the golden ratio): a sweep is for the senders
 * of its batch, and in no rhythm of theirs may it always meet the same ones.
 */
const SWEEP_BATCHES = 8.0902;
const SWEEP_CALLS = 64;

/** Rows that one of them deletes: it is over soon. */
const SWEEP_MOST = 1024;

/** Which batches sweep: of each kind more than what was added to all since it was swept last. Only accepts add. */
function sweeper(): (accepts: number) => Sweep {
  let turn = 0;
  let batches = 0;
  let calls = 0;
  return (more) => {
    if (more === 0) return { turn: -1, most: 0 };
    batches += 1;
    calls += more;
    if (batches < SWEEP_BATCHES && calls < SWEEP_CALLS) return { turn: -1, most: 0 };
    turn = (turn + 1) % KINDS;
    const most = Math.min(SWEEP_MOST, 16 + 8 * KINDS * calls);
    batches = Math.max(0, batches - SWEEP_BATCHES);
    calls = 0;
    return { turn, most };
  };
}

function lanesOf({ pool, server, timeoutMs, random }: ConnectionOptions): Batches {
  const sweep = sweeper();
  const lanes = Math.min(LANES, Math.max(1, poolMax(pool) - 1));
  const send = (batch: Batch): ReturnType<Server['run']> =>
    server.run(
      batch,
      sweep(batch.fresh.length + batch.others.filter(({ json }) => json.op === 'accept').length),
    );
  return batchesOf({ send, lanes, timeoutMs, random });
}
