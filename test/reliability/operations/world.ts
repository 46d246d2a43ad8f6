import type { JsonObject, OperationState } from '../../../src/registrations/index.ts';
import { type Stored, storedIn, watchIn } from '../../../src/registrations/for-tests.ts';
import type { RegistrationRow, RegistrationRows, StoreRegistrations } from '../../../src/stores/index.ts';
import {
  createMemoryState,
  memoryRows,
  put,
  type RecordRow,
  type RegistrationSearch,
  registrationsOf,
  senderState,
  type TaskRow,
} from '../../../src/stores/for-tests.ts';

/*
 * A store's rows, a seller, the event that tells the end of its task, a clock, and processes: all as data, so that a world can be
 * copied before each step.
 */

export const SELLER = 'https://seller.example/mcp';
export const TASK = 'task-1';
/** Ms of the world's clock. */
export const CALL_MS = 100;
export const KEY_MS = 250;
export const RETENTION_MS = 1_000_000;

/** What the seller does with a request that it has not seen; one that it has, by its key, is answered as before. */
export type SellerKind = 'submits' | 'completes' | 'refuses the registration' | 'refuses';

export type Invariant =
  | 'one process calls by one request key within one lease'
  | 'a call is repeated byte for byte, and its registration is dropped once, with a new key'
  | 'an operation that has ended stays so'
  | 'one that is over is not due, and keeps no arguments'
  | 'what the seller did is never forgotten'
  | 'a task is watched for one operation'
  | 'nobody polls after a safe end'
  | 'one process polls a task within one lease'
  | 'no step throws';

export interface Breach {
  readonly invariant: Invariant;
  readonly detail: string;
}

export type ActorKind = 'creator' | 'repeater' | 'poller' | 'webhook' | 'worker';

/** A process, by what its steps have given it so far: run again with that, it is where it was. */
export interface Actor {
  readonly kind: ActorKind;
  readonly name: string;
  log: readonly unknown[];
  /** The step that it takes next; undefined: it has ended. One that takes no step any more has died. */
  next: string | undefined;
  /** How far the task's end was at its last step on the store. */
  endSeen: EventState;
}

/** The event of the task's end: not told; told, not acknowledged; acknowledged; its handler has succeeded. */
export type EventState = 'none' | 'unsafe' | 'safe' | 'done';

export interface EventNames {
  readonly operationId?: string;
  readonly taskId?: string;
}

interface Lease {
  readonly who: string;
  readonly of: string;
  readonly until: number;
}

interface Accepted {
  readonly order: number;
  readonly answer: JsonObject;
}

export interface World {
  now: number;
  rows: readonly RegistrationRow[];
  readonly actors: readonly Actor[];
  readonly seller: SellerKind;
  /** By request key: what came first with it. */
  readonly requests: ReadonlyMap<
    string,
    { readonly order: number; readonly text: string; readonly hasConfig: boolean }
  >;
  /** By request key: what the seller has begun to do. */
  readonly accepted: ReadonlyMap<string, Accepted>;
  isFinished: boolean;
  event: EventState;
  /** What that event names. */
  names: EventNames;
  calls: readonly Lease[];
  polls: readonly Lease[];
  /** What may still happen. */
  readonly left: Readonly<Record<'repeater' | 'poller' | 'webhook' | 'worker' | 'time', number>>;
  breach: Breach | undefined;
}

export type Draft = { -readonly [K in keyof World]: World[K] };

/** A mistake in the rules, put between the code and its store. */
export interface Broken {
  readonly rows?: (rows: RegistrationRows, now: number) => RegistrationRows;
  readonly isDueHeld?: false;
}

export const breached = (draft: Draft, invariant: Invariant, detail: string): void => {
  draft.breach ??= { invariant, detail };
};

export const operationsIn = ({
  rows,
}: Pick<World, 'rows'>): readonly { row: RegistrationRow; stored: Stored }[] =>
  rows.filter(({ kind }) => kind === 'operation').map((row) => ({ row, stored: storedIn(row) }));

/** The first end of the task, as the store's rules read it. */
function endRows(event: EventState): Pick<RegistrationSearch, 'task' | 'record'> {
  const terminal = { key: 'end', hash: '', state: event === 'done' ? 'applied' : 'open' } as const;
  return {
    task: () => (event === 'none' ? undefined : ({ terminal } as TaskRow)),
    record: () => ({ state: 'leased', acked: event === 'safe' }) as RecordRow,
  };
}

/** The store of a world: the memory store's rows under the rules of all stores, on the world's clock. */
export function storeOf(draft: Draft, broken: Broken): StoreRegistrations {
  const real = registrationsOf(async (step) => {
    const state = createMemoryState();
    const tables = senderState(state, SELLER).registrations;
    for (const row of draft.rows) put(tables[row.kind], row.id, row);
    const value = step({ ...memoryRows(state), ...endRows(draft.event) }, draft.now);
    draft.rows = Object.values(tables).flatMap(({ rows }) => [...rows.values()]);
    return value;
  });
  return {
    ...real,
    run: (sender, plan) => real.run(sender, (rows, now) => plan(broken.rows?.(rows, now) ?? rows, now)),
    due: async (request) => {
      const before = draft.rows;
      const found = await real.due(request);
      if (broken.isDueHeld === false) draft.rows = before;
      return found;
    },
  };
}

/** A lease of a call: until then nobody else has the same one. */
function granted(draft: Draft, who: string, row: RegistrationRow): void {
  const { requestKey } = storedIn(row);
  const lease = { who, of: requestKey, until: row.dueAt ?? 0 };
  const other = draft.calls.find((one) => one.of === requestKey && one.who !== who && one.until > draft.now);
  if (other) {
    const detail = `${who} and ${other.who} call by ${requestKey}`;
    breached(draft, 'one process calls by one request key within one lease', detail);
  }
  draft.calls = [...draft.calls, lease];
}

const OVER: ReadonlySet<OperationState> = new Set(['ended', 'refused'] as const);

function requireOver(draft: Draft, row: RegistrationRow, was: RegistrationRow | undefined): void {
  const before = was && storedIn(was).state;
  const { state } = storedIn(row);
  if (before === undefined || !OVER.has(before) || state === before) return;
  breached(draft, 'an operation that has ended stays so', `${row.id} was ${before} and is ${state}`);
}

/** Looks at what a step of a process has changed. */
export function judgeStep(
  before: World,
  draft: Draft,
  who: string,
  claimed: readonly RegistrationRow[],
): void {
  const were = new Map(before.rows.map((row) => [`${row.kind} ${row.id}`, row]));
  for (const row of draft.rows) {
    const was = were.get(`${row.kind} ${row.id}`);
    if (row.kind === 'operation') {
      requireOver(draft, row, was);
      const isClaimed = claimed.some(({ kind, id }) => kind === row.kind && id === row.id);
      if (!isClaimed && row.dueAt !== null && row.dueAt !== was?.dueAt) granted(draft, who, row);
    }
    if (row.kind === 'watch' && was && watchIn(was).operationId !== watchIn(row).operationId) {
      breached(draft, 'a task is watched for one operation', `${row.id} is another operation's`);
    }
  }
  for (const row of claimed) if (row.kind === 'operation') granted(draft, who, row);
}

/** What must hold in every state, also where a process dies in it. */
export function judge(world: World): Breach | undefined {
  if (world.breach) return world.breach;
  for (const { row, stored } of operationsIn(world)) {
    const isCalling = stored.state === 'calling';
    if (isCalling !== (row.dueAt !== null) || isCalling !== (stored.sealed !== undefined)) {
      const detail = `${row.id} is ${stored.state}, due ${row.dueAt}`;
      return { invariant: 'one that is over is not due, and keeps no arguments', detail };
    }
  }
  for (const [key, { order }] of world.accepted) {
    const found = operationsIn(world).find(({ stored }) => orderOf(stored) === order);
    if (found && isRemembered(world, found.stored)) continue;
    const detail = `what was asked for by ${key} is ${found?.stored.state ?? 'nowhere'}, the end is ${world.event}`;
    return { invariant: 'what the seller did is never forgotten', detail };
  }
  return undefined;
}

/** Operations are told apart by their callers' word for them. */
const orderOf = ({ ref }: Stored): number => Number(ref);

/** Somebody will call again, or poll, or the end cannot be lost any more, or the caller is told that nobody knows. */
function isRemembered({ rows, event, seller }: World, { state }: Stored): boolean {
  if (state === 'calling' || state === 'orphaned') return true;
  if (state === 'refused') return false;
  const isPolled = rows.some((row) => row.kind === 'watch' && row.dueAt !== null && row.list === 'watched');
  const isTold = event === 'safe' || event === 'done';
  return seller === 'completes' ? isTold : isPolled || isTold;
}

/** The seller gets a call, and answers it. */
export function sell(draft: Draft, args: JsonObject): JsonObject {
  const {
    idempotency_key: key,
    order,
    push_notification_config: config,
  } = args as {
    readonly idempotency_key: string;
    readonly order: number;
    readonly push_notification_config?: JsonObject;
  };
  const request = { order, text: JSON.stringify(args), hasConfig: config !== undefined };
  const known = draft.requests.get(key);
  const others = [...draft.requests.values()].filter((one) => one.order === order);
  const isSame = known ? known.text === request.text : others.length === (request.hasConfig ? 0 : 1);
  if (!isSame) {
    const detail = `${key}, ${request.text}, after ${JSON.stringify([...draft.requests])}`;
    breached(
      draft,
      'a call is repeated byte for byte, and its registration is dropped once, with a new key',
      detail,
    );
  }
  draft.requests = new Map(draft.requests).set(key, request);
  const before = draft.accepted.get(key);
  if (before) return before.answer;
  const isRefused =
    draft.seller === 'refuses' || (draft.seller === 'refuses the registration' && request.hasConfig);
  if (isRefused) return { error: { code: 'INVALID_REQUEST', message: 'no webhooks' } };
  const answer: JsonObject =
    draft.seller === 'completes'
      ? { status: 'completed', result: { media_buy_id: `buy-${order}` } }
      : { status: 'submitted', task_id: TASK };
  draft.accepted = new Map(draft.accepted).set(key, { order, answer });
  return answer;
}
