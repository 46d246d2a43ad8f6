// Carries out the moves of media buys that `apply` has stored (told.md §3.3). `registrations.start` runs the loop, in
// any number of processes.
import type { StoreRegistrations } from '../../stores/store.ts';
import { messageOf } from '../../shared/errors.ts';
import { LOOK_MS, untilNextLook } from '../retry-loop.ts';
import { claimTurns, TURNS_ID } from './move-row.ts';
import { begin, type HeldRow, look, type StepsContext } from './move-steps.ts';

export interface MoveLoopContext extends StepsContext {
  readonly registrations: StoreRegistrations;
  readonly perSeller: number;
  /** Continues a seller's renewal of credentials that another process has left unfinished. */
  readonly goOn: (agentUrl: string) => Promise<void>;
  /** Retires the seller's former routes (replaced by a renewal of credentials) that nothing uses any more. */
  readonly retireFormers: (agentUrl: string) => Promise<void>;
}

/** The most rows (media buys and sellers) that a process works on concurrently. */
const MOST = 10;

export interface MoveLoop {
  /** Carries out moves until the signal aborts; resolves when the running work has ended. */
  readonly run: (stopping: AbortSignal) => Promise<void>;
  /** Searches for due moves immediately, because moves were stored. */
  readonly wake: () => void;
}

export function moveLoop(context: MoveLoopContext): MoveLoop {
  const { registrations, holdMs, sleep, warn } = context;
  const running = new Set<Promise<void>>();
  let idle = new AbortController();
  const wake = (): void => idle.abort();

  const start = (work: (row: HeldRow) => Promise<void>, row: HeldRow): void => {
    const run = work(row)
      .catch((error: unknown) => {
        warn({ sender: row.sender, error }, `A step of a move is tried again later. ${messageOf(error)}`);
      })
      .finally(() => {
        running.delete(run);
        wake();
      });
    running.add(run);
  };

  /** Begins as many of a seller's waiting moves as the limit of concurrent updates allows. */
  const turns = async (row: HeldRow, stopping: AbortSignal): Promise<void> => {
    const { sender, dueAt: heldAt } = row;
    await context.goOn(sender);
    const { rows } = await registrations.page({
      kind: 'move',
      list: 'waiting',
      sender,
      limit: context.perSeller,
    });
    const waiting = rows.map(({ id }) => id);
    const { ids, until } = await registrations.run(sender, (step, now) => {
      const end = Math.ceil(now + holdMs);
      const claim = { sender, heldAt, waiting, until: end, perSeller: context.perSeller };
      return { ids: claimTurns(step, now, claim), until: end };
    });
    for (const id of ids) start((held) => begin(context, held, stopping), { sender, id, dueAt: until });
    if (waiting.length === 0) await context.retireFormers(sender);
  };

  const looks = async (stopping: AbortSignal): Promise<number> => {
    try {
      const max = Math.max(1, MOST - running.size);
      const found = await registrations.due({ kind: 'move', max, holdMs, senders: [] });
      for (const { sender, id, dueAt } of found.rows) {
        const work = id === TURNS_ID ? turns : (held: HeldRow) => look(context, held, stopping);
        start((held) => work(held, stopping), { sender, id, dueAt });
      }
      return found.rows.length === max ? 0 : untilNextLook(found.nextDueMs);
    } catch (error) {
      warn({ error }, `Registrations: the store could not list the steps of moves. ${messageOf(error)}`);
      return LOOK_MS;
    }
  };

  return {
    wake,
    run: async (stopping) => {
      stopping.addEventListener('abort', wake, { once: true });
      while (!stopping.aborted) {
        if (running.size >= MOST) {
          await Promise.race(running);
          continue;
        }
        idle = new AbortController();
        const idleMs = await looks(stopping);
        if (idleMs > 0 && !stopping.aborted) await sleep(idleMs, idle.signal);
      }
      stopping.removeEventListener('abort', wake);
      while (running.size > 0) await Promise.all(running);
    },
  };
}
