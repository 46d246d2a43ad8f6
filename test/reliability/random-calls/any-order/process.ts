import { Fault, type Store } from '../../../../src/index.ts';
import type {
  AcceptRequest,
  AcceptResult,
  EventClaim,
  FailRequest,
  LeaseDueRequest,
} from '../../../../src/stores/index.ts';
import type { StoreEffects } from '../../../../src/testing/index.ts';
import type { Call } from '../calls.ts';
import { requestOf } from '../calls.ts';
import type { Span, StatusOf } from './account.ts';
import type { Ledger, Owned } from './ledger.ts';

/** One handle on the store, and what it shares with the others. */
export interface Process {
  readonly name: string;
  readonly store: Store;
  /** Where `transaction` writes, for stores that have it. */
  readonly effects: StoreEffects | undefined;
  readonly ledger: Ledger;
  /** Lets others go first, or not: the scheduler decides. */
  readonly gate: (what: string) => Promise<void>;
  readonly clock: TestClock;
  /** What kind of event each key of the run is, and the caps. */
  readonly world: World;
  /** How often what was answered. */
  readonly tally: Map<string, number>;
}

/** The store's clock as the run moves it. */
export interface TestClock {
  readonly now: () => number;
  readonly advance: (ms: number) => void;
  /** Orders what happened in this process. */
  readonly tick: () => number;
}

/** What stays the same for a run. */
export interface World {
  /** By key number. */
  readonly events: readonly Pick<Call, 'task' | 'second' | 'flags'>[];
  readonly maxRecords: number;
  readonly maxBytes: number;
}

/** On two handles, each with one call under way. */
export const PROCESSES = 4;

const LEASE_MS = 8000;
const RETENTION_MS = 86_400_000;
export const RETRY = { attempts: 4, crashes: 2 } as const;

const SENDERS = ['https://one.example/mcp', 'https://two.example/mcp'] as const;
const TERMINAL = 2;
/** Both bits: one in four, for calls are to meet. */
const SECOND_SENDER = 48;

const senderOf = ({ flags }: Call): string => SENDERS[(flags & SECOND_SENDER) === SECOND_SENDER ? 1 : 0];

const withoutHash = ({ terminalHash: _hash, ...event }: EventClaim): EventClaim => event;

/**
 * As `calls.ts` has it, but: a key is always the same status of the same task, ids are new, nothing is forgotten, and a task
 * has as many terminal statuses as come (the model checker has the others).
 */
export function delivery(
  made: Call,
  acceptId: string,
  { events, maxRecords, maxBytes }: World,
): AcceptRequest {
  const event = events[made.key % events.length] ?? { task: 0, second: 0, flags: 0 };
  const flags = (made.flags & ~TERMINAL) | (event.flags & TERMINAL);
  const request = requestOf({ ...made, task: event.task, second: event.second, flags });
  const { nonce, event: sent } = request;
  return {
    ...request,
    ...(sent && { event: withoutHash(sent) }),
    acceptId,
    sender: senderOf(made),
    // Some come again; most are new, or nearly every delivery would be a replay.
    ...(nonce && { nonce: made.nonce < 3 ? nonce : { ...nonce, nonce: `nonce of ${acceptId}` } }),
    limits: {
      maxRecordsPerSender: maxRecords,
      maxPendingBytesPerSender: maxBytes,
      maxNoncesPerKey: 1000,
      maxNonces: 1000,
    },
    retry: RETRY,
    retentionMs: RETENTION_MS,
    leaseMs: LEASE_MS,
  };
}

export function statusOf({ event }: AcceptRequest): StatusOf {
  const task = event?.task;
  return { taskId: task?.id, instant: task?.instant, terminal: task?.terminal ?? false };
}

/** Sends a call when the scheduler says so, and goes on with its answer when it says so. */
async function made<T>(
  { gate, clock, name, tally }: Process,
  what: string,
  call: (sentAt: number) => Promise<T>,
  heard: (answer: T, span: Span) => void,
): Promise<T> {
  await gate(`${name}: ${what} leaves`);
  const sent = { sentSeq: clock.tick(), sentAt: clock.now() };
  const answer = await call(sent.sentAt);
  count(tally, what, answer);
  heard(answer, { ...sent, heardSeq: clock.tick(), heardAt: clock.now() });
  await gate(`${name}: ${what} is answered`);
  return answer;
}

/** `accept: won`, `complete: lost`, … */
function count(tally: Map<string, number>, what: string, answer: unknown): void {
  const kind = (answer as { readonly kind?: string } | undefined)?.kind ?? answer;
  if (typeof kind !== 'string') return;
  const name = `${what.slice(0, what.indexOf('('))}: ${kind}`;
  tally.set(name, (tally.get(name) ?? 0) + 1);
}

export const complete = (process: Process, of: Owned): Promise<unknown> =>
  made(
    process,
    `complete(${of.key}) by ${of.owner}`,
    (sentAt) => {
      process.ledger.ending(of, sentAt);
      return process.store.complete({ ...of, retentionMs: RETENTION_MS });
    },
    (answer, span) => process.ledger.ended(of, answer, span),
  );

function fail(
  process: Process,
  of: Owned,
  more: Pick<FailRequest, 'permanent' | 'unstarted'>,
): Promise<unknown> {
  const request = { ...of, ...more, retry: RETRY, backoffMs: 2000, retentionMs: RETENTION_MS };
  return made(
    process,
    `fail(${of.key}) by ${of.owner}`,
    (sentAt) => {
      process.ledger.ending(of, sentAt);
      return process.store.fail(request);
    },
    (answer, span) => process.ledger.ended(of, answer, span),
  );
}

const renew = (process: Process, of: Owned): Promise<unknown> =>
  made(
    process,
    `renew(${of.key}) by ${of.owner}`,
    () => process.store.renew({ ...of, leaseMs: LEASE_MS }),
    (answer, span) => process.ledger.renewed(of, answer, span),
  );

/** A row of the handler's and the completion, both or neither. */
async function transact(process: Process, of: Owned): Promise<unknown> {
  const { store, effects, ledger } = process;
  if (!store.transaction || !effects) return complete(process, of);
  const transaction = store.transaction.bind(store);
  return made(
    process,
    `transaction(${of.key}) by ${of.owner}`,
    async (sentAt): Promise<'done' | 'lost'> => {
      ledger.ending(of, sentAt);
      try {
        await transaction({ ...of, retentionMs: RETENTION_MS }, (tx) => effects.write(tx));
        return 'done';
      } catch (error) {
        if (error instanceof Fault && error.code === 'lease_lost') return 'lost';
        throw error;
      }
    },
    (answer, span) => {
      if (answer === 'done') ledger.committed(of, span);
      ledger.ended(of, answer, span);
    },
  );
}

/** How a handler ends. What dies, or ends later than its process thinks, is left to others' calls of old owners. */
const ENDS: readonly ((process: Process, of: Owned) => Promise<unknown>)[] = [
  complete,
  transact,
  (process, of) => fail(process, of, { permanent: false }),
  (process, of) => fail(process, of, { permanent: true }),
  (process, of) => fail(process, of, { permanent: false, unstarted: true }),
  // Its process dies.
  async () => undefined,
];

async function handle(process: Process, of: Owned, { accept, flags }: Call): Promise<void> {
  await process.gate(`${process.name}: the handler of ${of.key} runs`);
  if (flags & 16) await renew(process, of);
  await ENDS[accept % ENDS.length]?.(process, of);
}

/** `second`: the answer is lost, and the client sends the same again. */
const LOST_REPLY = 1;
/** A delivery that waits looks so often. */
const LOOKS = 3;

export async function deliver(process: Process, call: Call, acceptId: string): Promise<void> {
  const request = delivery(call, acceptId, process.world);
  const { sender, event, mode } = request;
  if (!event) return;
  const of = { sender, key: event.key };
  process.ledger.sending(request, statusOf(request));
  const send = (heard: (answer: AcceptResult, span: Span) => void): Promise<AcceptResult> =>
    made(process, `accept(${event.key}) ${mode} ${acceptId}`, () => process.store.accept(request), heard);
  let lost: Span | undefined;
  if (call.second === LOST_REPLY) {
    await send((_answer, span) => {
      lost = span;
    });
  }
  for (let looks = 0; looks < LOOKS; looks += 1) {
    const answer = await send((said, span) => {
      // What is told now may have been decided then.
      const since = lost && { sentSeq: lost.sentSeq, sentAt: lost.sentAt };
      process.ledger.accepted(request, said, { ...span, ...since });
    });
    lost = undefined;
    if (answer.kind === 'won') return handle(process, { ...of, owner: answer.lease.owner }, call);
    const waits = answer.kind === 'in-flight' || answer.kind === 'task-busy';
    if (mode === 'inbox' || !waits) return;
  }
}

const leaseRequest = (owner: string, max: number): LeaseDueRequest => ({
  owner,
  max,
  leaseMs: LEASE_MS,
  retry: RETRY,
  retentionMs: RETENTION_MS,
  senders: SENDERS,
});

export function inboxOf({ store }: Process): NonNullable<Store['inbox']> {
  if (!store.inbox) throw new TypeError('the store has no inbox');
  return store.inbox;
}

/** What is due, then one suspect, which runs alone. */
export async function work(process: Process, call: Call, owner: string): Promise<number> {
  const max = 1 + (call.second % 3);
  const ran = await workOn(process, call, leaseRequest(owner, max));
  return ran + (await workOn(process, call, { ...leaseRequest(`${owner}, alone`, 1), alone: true }));
}

async function workOn(process: Process, call: Call, request: LeaseDueRequest): Promise<number> {
  const { owner } = request;
  const { events } = await made(
    process,
    `lease by ${owner}`,
    () => inboxOf(process).lease(request),
    ({ events, died }, span) => {
      for (const { sender, key } of died) process.ledger.died(sender, key);
      for (const event of events) process.ledger.leased(event, span, LEASE_MS);
    },
  );
  for (const { sender, key } of events) await handle(process, { sender, key, owner }, call);
  return events.length;
}

/** One that had a lease once wakes up. */
function anyOwner({ ledger }: Process, { accept, nonce }: Call): Owned | undefined {
  const leases = ledger.leases();
  const found = leases[(accept + 6 * nonce) % Math.max(1, leases.length)];
  return found && { sender: found.sender, key: found.key, owner: found.owner };
}

async function late(
  process: Process,
  call: Call,
  end: (process: Process, of: Owned) => Promise<unknown>,
): Promise<unknown> {
  const of = anyOwner(process, call);
  return of && end(process, of);
}

type Do = (process: Process, call: Call, id: string) => Promise<unknown>;

const DOES: Readonly<Record<Call['does'], Do>> = {
  accept: deliver,
  lease: work,
  complete: (process, call) => late(process, call, call.flags & 8 ? transact : complete),
  fail: (process, call) =>
    late(process, call, (at, of) => fail(at, of, { permanent: (call.flags & 4) !== 0 })),
  renew: (process, call) => late(process, call, renew),
  redrive: (process, call) => {
    const { sender, key } = named(call);
    return made(
      process,
      `redrive(${key})`,
      () => inboxOf(process).redrive(sender, key),
      () => undefined,
    );
  },
  discard: (process, call) => {
    const { sender, key } = named(call);
    const heard = (answer: string, span: Span): void => {
      if (answer === 'discarded') process.ledger.discarded(sender, key, span);
    };
    return made(process, `discard(${key})`, () => inboxOf(process).discard(sender, key, RETENTION_MS), heard);
  },
  peek: look,
  list: look,
  inspect: look,
  overdue: look,
  told: look,
  wait: async (process, call) => {
    await process.gate(`${process.name}: the clock moves`);
    process.clock.advance(3000 * (1 + call.second));
  },
};

const named = (call: Call): { sender: string; key: string } => ({
  sender: senderOf(call),
  key: `key-${call.key}`,
});

/** Looking changes nothing; that it is let in between is the point. */
async function look(process: Process, call: Call): Promise<unknown> {
  const { sender, key } = named(call);
  return made(
    process,
    `inspect(${key})`,
    () => inboxOf(process).inspect(sender, key),
    () => undefined,
  );
}

/** One call after the other; other processes are in between wherever the scheduler wants them. */
export async function runScript(process: Process, script: readonly Call[]): Promise<void> {
  for (const [index, call] of script.entries())
    await DOES[call.does](process, call, `${process.name}.${index}`);
}
