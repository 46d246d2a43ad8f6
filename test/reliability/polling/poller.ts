import { type Poller, type Receiver } from '../../../src/poll/index.ts';
import type { CallSeller, JsonObject, Registrations } from '../../../src/registrations/index.ts';
import { SELLER_ROW_ID } from '../../../src/registrations/for-tests.ts';
import type { Store } from '../../../src/index.ts';
import type { RegistrationRow, RegistrationRows, StoreRegistrations } from '../../../src/stores/index.ts';
import { clientOf } from '../market/buyer.ts';
import { storeWith } from '../processes/breaks.ts';
import type { Write } from '../processes/ledger.ts';
import type { Polls } from '../processes/wire.ts';
import { pollerBy } from '../../support/any-client.ts';

/** A process's poller, and what it writes down of itself. */
export interface Polling {
  /** With each turn of its registrations seen: a poll is decided in one. */
  readonly watched: <T extends Store>(store: T) => T;
  readonly poller: (receiver: Receiver, registrations: Registrations) => Poller;
}

const taskOf = ({ task_id: taskId, id }: JsonObject): string => (taskId ?? id) as string;

/** Whether the mistake is not to write this. */
type Forgets = (row: RegistrationRow, turn: Turn) => boolean;

/** What has been seen of a turn. */
interface Turn {
  /** A poll is decided on: no other turn asks how a task has ended. */
  decides: boolean;
  /** A poll is ended: the seller's polls are counted anew, and no new one is decided on. */
  ends: boolean;
  /** Until when a lease has to be that begins now. */
  readonly leaseEnd: number;
}

const FORGETS: Readonly<Record<NonNullable<Polls['breaks']>, Forgets>> = {
  'no-lease': ({ dueAt }, { decides, leaseEnd }) => decides && dueAt === leaseEnd,
  'no-end': ({ dueAt, list }, { ends }) => !ends && dueAt === null && list === null,
};

/** @param decides is told of a task whose poll is decided on, or against. */
function rowsSeen(
  rows: RegistrationRows,
  now: number,
  { breaks, callMs }: Polls,
  decides: (taskId: string) => void,
): RegistrationRows {
  const turn: Turn = { decides: false, ends: false, leaseEnd: Math.ceil(now + 2 * callMs) };
  const forgets = breaks && FORGETS[breaks];
  return {
    get: (kind, id) => rows.get(kind, id),
    taskEnd: (id) => {
      turn.decides = true;
      decides(id);
      return breaks === 'no-end' ? undefined : rows.taskEnd(id);
    },
    lastTold: (id) => rows.lastTold(id),
    eventState: (key) => rows.eventState(key),
    acknowledge: (key) => rows.acknowledge(key),
    save: (row) => {
      if (row.id === SELLER_ROW_ID) turn.ends = !turn.decides;
      if (!(row.kind === 'watch' && forgets?.(row, turn))) rows.save(row);
    },
  };
}

export function pollingOf(polls: Polls, write: Write): Polling {
  const { pid } = process;
  const { breaks, ...times } = polls;
  // It is the poller's own deadline that ends a question.
  const client = clientOf(10 * times.callMs);
  /** By task, the turn in which its last poll was decided on. */
  const decided = new Map<string, string>();
  let turns = 0;

  const seen = (registrations: StoreRegistrations): StoreRegistrations => ({
    run: async (sender, plan) => {
      turns += 1;
      const key = `turn ${turns} of ${pid}`;
      write({ what: 'turn', key, pid });
      return registrations.run(sender, (rows, now) =>
        plan(
          rowsSeen(rows, now, polls, (taskId) => decided.set(taskId, key)),
          now,
        ),
      );
    },
    due: (request) => registrations.due(breaks === 'no-lease' ? { ...request, holdMs: 1 } : request),
    page: (query) => registrations.page(query),
  });

  const ask: CallSeller = async (agentUrl, operation, args, options) => {
    const taskId = taskOf(args);
    write({ what: 'ask', key: decided.get(taskId) ?? '', pid, taskId });
    return client(agentUrl, operation, args, options);
  };

  return {
    watched: (store) => {
      if (!store.registrations) throw new TypeError('the store keeps no registrations');
      return storeWith(store, { registrations: seen(store.registrations) });
    },
    poller: (receiver, registrations) =>
      pollerBy({
        receiver,
        registrations,
        call: Object.assign(ask, {
          transport: (agentUrl: string) =>
            agentUrl.endsWith('/a2a') ? ('agent' as const) : ('tool' as const),
        }),
        ...times,
      }),
  };
}
