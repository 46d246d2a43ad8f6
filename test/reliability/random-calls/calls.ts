import * as fc from 'fast-check';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import type { EventChannel } from '../../../src/events/index.ts';
import type { Store } from '../../../src/index.ts';
import type {
  AcceptRequest,
  EventClaim,
  LeaseDueResult,
  TaskClaim,
  ToldClaim,
} from '../../../src/stores/index.ts';
import { operationRowId } from '../../../src/stores/for-tests.ts';
import { registrationsOf } from '../../../src/testing/for-tests.ts';
import {
  emptyStream,
  hadIn,
  placedAnew,
  type Stream,
  streamIn,
  streamText,
} from '../../../src/windows/for-tests.ts';
import { acceptRequest } from '../../stores/requests.ts';

type Does =
  | 'accept'
  | 'complete'
  | 'fail'
  | 'renew'
  | 'peek'
  | 'lease'
  | 'list'
  | 'inspect'
  | 'redrive'
  | 'discard'
  | 'overdue'
  | 'told'
  | 'wait';

const OFTEN: readonly Does[] = [
  'accept',
  'accept',
  'accept',
  'accept',
  'accept',
  'lease',
  'lease',
  'complete',
];
const SOMETIMES: readonly Does[] = [
  'fail',
  'renew',
  'peek',
  'list',
  'inspect',
  'redrive',
  'discard',
  'overdue',
  'told',
  'wait',
];

/** One call, by small numbers: few names, so that the calls meet. */
export interface Call {
  readonly does: Does;
  readonly accept: number;
  readonly key: number;
  readonly nonce: number;
  readonly task: number;
  readonly second: number;
  readonly flags: number;
  /** Of `CHANNELS`. */
  readonly channel: number;
}

/** By which an accept tells of its task; undefined: by a webhook whose sender has no other. */
const CHANNELS: readonly (EventChannel | undefined)[] = [
  undefined,
  undefined,
  undefined,
  'webhook',
  'webhook',
  'poll',
  'poll',
  'response',
];

const CALL = {
  does: fc.constantFrom(...OFTEN, ...SOMETIMES),
  accept: fc.nat(5),
  key: fc.nat(3),
  nonce: fc.nat(6),
  task: fc.nat(2),
  second: fc.nat(3),
  flags: fc.nat(63),
};

export const call: fc.Arbitrary<Call> = fc.record({ ...CALL, channel: fc.nat(CHANNELS.length - 1) });

/** Of senders that tell by webhooks alone. */
export const webhookCall: fc.Arbitrary<Call> = fc.record(CALL).map((made) => ({ ...made, channel: 0 }));

const RETENTION_MS = 61_000;

/** A call that gives a media buy its terms, and reads what is known of its reports. */
interface StreamCall extends Omit<Call, 'does'> {
  readonly does: 'stream';
}

type WindowClaim = NonNullable<NonNullable<EventClaim['report']>['windows']>[number];

const mediaBuyOf = (task: number): string => `media-buy-${task}`;

/** Every third one is a report of a media buy for a day, and that its last; an observation is one that was pulled. */
function finalOf(made: Call, instant: string): Pick<EventClaim, 'report' | 'mediaBuy'> {
  const { task, accept, key, flags } = made;
  const id = mediaBuyOf(task);
  if (accept % 3 !== 0) return { mediaBuy: { id, instant } };
  const day = Math.floor(key / 2);
  const window: WindowClaim = {
    id,
    mediaBuyId: id,
    start: day * DAY_MS,
    end: (day + 1) * DAY_MS,
    stage: flags & 16 ? 'late' : '',
    isRevision: (flags & 8) !== 0,
  };
  return {
    report: {
      mediaBuyIds: [id],
      final: true,
      instant,
      windows: [window],
      ...(isObservation(made) && { isPulled: true }),
    },
  };
}

const DAY_MS = 86_400_000;

/** A media buy that owes a report for each of the first days of 1970. */
const streamOf = (id: string): Stream => ({
  ...emptyStream(id),
  terms: [{ from: 0, frequency: 'daily', spans: [{ start: 0, end: 100 * DAY_MS }] }],
});

const instantOf = (second: number): string => `00000000000${second}.`;

const TERMINAL = 2;

/** What a call tells of its task, or of the operation that that is of. */
function claimOf({ accept, task, second, flags, channel }: Call): TaskClaim {
  const terminal = (flags & TERMINAL) !== 0;
  const timed = { instant: instantOf(second), instantMs: second * 1000 };
  const source = CHANNELS[channel];
  if (!source) return { id: `task-${task}`, ...timed, terminal };
  const isTimed = source === 'webhook' || second > 1;
  const operation = operationRowId(`operation-${task}`);
  const told: ToldClaim = {
    source,
    status: terminal ? 'completed' : `status-${second % 2}`,
    ...(source !== 'response' && accept % 2 > 0 && { operation }),
    ...(terminal && { hash: `says-${accept % 3}` }),
    ...(!terminal && !isTimed && { askedAt: flags & 1 ? 0 : NEVER_BEFORE_MS }),
  };
  const id = source === 'response' ? operation : `task-${task}`;
  return { id, ...(isTimed && timed), terminal, told };
}

/** Asked for after all that the store was told. Unix ms. */
const NEVER_BEFORE_MS = 8_640_000_000_000_000;

/** An observation has no nonce, and is kept for a worker. */
const isObservation = ({ channel }: Call): boolean => (CHANNELS[channel] ?? 'webhook') !== 'webhook';

/** The accept that a call is, with names from small sets. */
export function requestOf(made: Call): AcceptRequest {
  const { accept, key, nonce, task, second, flags } = made;
  const { nonce: _own, ...base } = acceptRequest({
    key: `key-${key}`,
    body: flags & 1 ? 'first' : 'changed',
  });
  const claim = claimOf(made);
  return {
    ...base,
    acceptId: `accept-${accept}`,
    mode: flags & 4 && !isObservation(made) ? 'inline' : 'inbox',
    ...(!isObservation(made) && {
      nonce: { keyid: `kid-${nonce % 2}`, nonce: `nonce-${nonce}`, nowMs: 0, expiresAtMs: 33_000 },
    }),
    ...(base.event && {
      event: {
        ...base.event,
        onChanged: flags & 8 ? 'conflict' : 'first-wins',
        ...(task > 0 && { task: claim }),
        ...(task > 0 && claim.terminal && flags & 32 && { terminalHash: `says-${key % 2}` }),
        ...(flags & OF_MEDIA_BUY && second > 0 && finalOf(made, instantOf(second))),
        ...(flags & 16 && { notificationId: `notification-${task}` }),
      },
    }),
    limits: {
      maxRecordsPerSender: 7,
      maxPendingBytesPerSender: 14,
      maxNoncesPerKey: 4,
      maxNoncesPerSender: 5,
      maxNonces: 6,
    },
    retry: { attempts: 4, crashes: 2 },
    retentionMs: RETENTION_MS,
  };
}

/** A lease's owner: an accept, or one of the workers. */
function ownerOf({ accept, flags }: Call, acceptId: string): string {
  return flags & 1 ? acceptId : `worker-${accept % 3}`;
}

/** Of `flags`: mode inline, and what follows is by the accept's own id. */
const OWN_LEASE = 1 | 4;

/** Of `flags`: the event is of a media buy; a report of it, and the final one, with an `accept` that 3 divides. */
const OF_MEDIA_BUY = 32;

/** An accept, and the end of its lease by who has it: by chance alone hardly any is. */
function leased([made, does]: readonly [Call, Does]): readonly Call[] {
  const flags = made.flags | OWN_LEASE;
  return [
    { ...made, does: 'accept', flags },
    { ...made, does, flags },
  ];
}

/** The end of a task and final report in one, handled or not; what is told of the task, and another event of the same. */
function ending([made, other, isHandled]: readonly [Call, Call, boolean]): readonly Call[] {
  const end = {
    ...made,
    accept: 3 * (made.accept % 2),
    task: 1 + (made.task % 2),
    second: 1 + (made.second % 3),
    flags: made.flags | OWN_LEASE | TERMINAL | OF_MEDIA_BUY,
  };
  const { task } = end;
  return [
    { ...end, does: 'accept' },
    ...(isHandled ? [{ ...end, does: 'complete' } as const] : []),
    { ...other, does: 'told', task },
    { ...other, does: 'accept', task, flags: other.flags | OF_MEDIA_BUY },
  ];
}

/** Calls of any kind, and some that follow from each other. */
const histories: fc.Arbitrary<readonly (Call | StreamCall)[]> = fc
  .array(
    fc.oneof(
      { weight: 8, arbitrary: call.map((made): readonly (Call | StreamCall)[] => [made]) },
      { weight: 1, arbitrary: call.map((made): readonly StreamCall[] => [{ ...made, does: 'stream' }]) },
      {
        weight: 2,
        arbitrary: fc.tuple(call, fc.constantFrom<Does>('complete', 'complete', 'fail', 'renew')).map(leased),
      },
      { weight: 2, arbitrary: fc.tuple(call, call, fc.boolean()).map(ending) },
    ),
    { minLength: 1, maxLength: 50, size: 'max' },
  )
  .map((parts) => parts.flat());

/** How a history is made on a store. */
export type Form = (store: Store) => Store;

/** The store, of accepts all of whose caps are this one in the place of `requestOf`'s. */
export function capped(most: number): Form {
  const limits = {
    maxRecordsPerSender: most,
    maxPendingBytesPerSender: most,
    maxNoncesPerKey: most,
    maxNoncesPerSender: most,
    maxNonces: most,
  };
  return (store) => ({ ...store, accept: (request) => store.accept({ ...request, limits }) });
}

const INSTANTS: readonly string[] = [
  'insertedAt',
  'notBefore',
  'leaseUntil',
  'nextDueMs',
  'leftMs',
  'waitedMs',
];

/** An answer but for its instants, which differ by what passes between two calls; everything else is the same. */
export function timeless(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(timeless);
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
  const members = Object.entries(value).filter(([name]) => !INSTANTS.includes(name));
  return Object.fromEntries(members.map(([name, member]) => [name, timeless(member)]));
}

/**
 * Compares the answers of two stores to one call. A look for work that puts a suspect aside, or ends an event, frees its
 * task: what waited for that comes next where rows are looked for one by one, and behind those that were found together
 * where they are not, which may take the task before it. Both are right, and the stores are not in one state from then on.
 * @returns false if they are not.
 * @throws Error if they differ in anything else.
 */
export function isSameAnswer(given: unknown, expected: unknown, about: string): boolean {
  if (hasFreed(given) && hasFreed(expected) && !isDeepStrictEqual(given, expected)) return false;
  expect(given, about).toEqual(expected);
  return true;
}

/** Whether it is the answer of a look for work that may have freed a task. */
function hasFreed(answer: unknown): boolean {
  const { events, died = [], stale = [], suspectDue = false } = (answer ?? {}) as Partial<LeaseDueResult>;
  return events !== undefined && (suspectDue || died.length + stale.length > 0);
}

const STATES = ['queued', 'leased', 'dead'] as const;

/** Between two calls, one after the other. Ms. */
export const STEP_MS = 11;

/**
 * How far the clocks of both stores move before a call. Ms. 11 of them for each: two calls within one ms on one store
 * may be in two on the other, and then what is due at once is due in another order. Steps of 5 s meet neither the
 * lease (8 s), nor the nonces (33 s), nor the retention (61 s).
 */
export function stepBefore({ does, key }: Call | StreamCall): number {
  return STEP_MS + (does === 'wait' ? 5000 * (1 + key * key) : 0);
}

/** What is known of a media buy's reports, by terms that it has from now on. */
function streamAnswer(store: Store, made: StreamCall): Promise<unknown> {
  const { sender } = acceptRequest({ key: 'any' });
  const id = mediaBuyOf(made.task);
  return registrationsOf(store).run(sender, (rows) => {
    const row = rows.get('stream', id);
    const before = row ? streamIn(row.value) : emptyStream(id);
    const stream = placedAnew({ ...before, terms: streamOf(id).terms });
    const value = streamText(stream);
    rows.save({ kind: 'stream', sender, id, value, dueAt: null, list: null, expiresAt: null });
    // When its seller said so is each store's own clock.
    const { changedAt: _then, endSaid, ...said } = stream;
    const told = { ...said, ...(endSaid && { endSaid: { ...endSaid, at: 0 } }) };
    return { kind: hadIn(stream, 'daily').length > 0 ? 'had' : 'not had', value: streamText(told) };
  });
}

/** The answer of a store to it. */
export async function answerOf(store: Store, made: Call | StreamCall): Promise<unknown> {
  if (made.does === 'stream') return streamAnswer(store, made);
  const request = requestOf(made);
  const { sender, retry } = request;
  const key = `key-${made.key}`;
  const lease = { sender, key, owner: ownerOf(made, request.acceptId) };
  const inbox = store.inbox ?? expect.fail('both have an inbox');
  const answers: Record<Exclude<Does, 'wait'>, () => Promise<unknown>> = {
    accept: () => store.accept(request),
    complete: () => store.complete({ ...lease, retentionMs: RETENTION_MS }),
    fail: () =>
      store.fail({
        ...lease,
        permanent: (made.flags & 32) !== 0,
        ...(made.flags & 16 && { unstarted: true }),
        ...(made.flags & 8 && { error: `error-${made.nonce}` }),
        retry,
        backoffMs: made.second * 4000,
        retentionMs: RETENTION_MS,
      }),
    renew: () => store.renew({ ...lease, leaseMs: 8000 }),
    peek: () => store.peek(sender, key),
    lease: () =>
      inbox.lease({
        owner: `worker-${made.accept % 3}`,
        max: 1 + (made.second % 3),
        leaseMs: 8000,
        retry,
        retentionMs: RETENTION_MS,
        senders: [],
      }),
    list: async () => {
      const of = { state: STATES[made.task] ?? 'queued', ...(made.flags & 1 && { sender }) } as const;
      const { records, next } = await inbox.list({ ...of, limit: 1 + made.second });
      return { records, more: next !== undefined };
    },
    inspect: () => inbox.inspect(sender, key),
    redrive: () => inbox.redrive(sender, key),
    discard: () => inbox.discard(sender, key, RETENTION_MS),
    overdue: async () => (await inbox.overdueMs?.()) !== undefined,
    told: () =>
      registrationsOf(store).run(sender, (rows) =>
        [`task-${made.task}`, operationRowId(`operation-${made.task}`)].map((id) => ({
          end: rows.taskEnd(id),
          status: rows.lastTold(id)?.status,
        })),
      ),
  };
  return made.does === 'wait' ? undefined : answers[made.does]();
}

/** What histories have to come to, or they compare little: every decision of an accept, and ends of leases. */
const REACHED: readonly string[] = [
  ...[
    'won',
    'queued',
    'in-flight',
    'task-busy',
    'done',
    'stale',
    'conflict',
    'replayed',
    'already-final',
    'final-unsafe',
  ].map((kind) => `accept ${kind}`),
  'accept over-cap',
  'accept rate-abuse',
  'complete done',
  'fail queued',
  'fail dead',
  'renew renewed',
  'lease some',
  'discard discarded',
  'overdue true',
  'told undefined',
  'told unsafe',
  'told safe',
  'told done',
  'told a status',
  'told the end of an operation',
  'stream had',
  'stream not had',
];

interface Told {
  readonly end: string | undefined;
  readonly status: string | undefined;
}

function toldNames([ofTask, ofOperation]: readonly Told[]): readonly string[] {
  return [
    `told ${ofTask?.end}`,
    ...(ofTask?.status === undefined ? [] : ['told a status']),
    ...(ofOperation?.end === 'done' ? ['told the end of an operation'] : []),
  ];
}

/** The names of `REACHED` that an answer comes to, among others. */
function cameTo({ does }: Call | StreamCall, answer: unknown): readonly string[] {
  if (does === 'told') return toldNames(answer as readonly Told[]);
  const { kind, events } = Object(answer) as {
    readonly kind?: string;
    readonly events?: readonly unknown[];
  };
  const some = events && (events.length > 0 ? 'some' : 'none');
  return [`${does} ${kind ?? some ?? String(answer)}`];
}

/** Calls of one kind, as they are made on a store one after the other. */
export interface Calls<C> {
  readonly histories: fc.Arbitrary<readonly C[]>;
  /** How far the clocks move before a call. Ms. */
  readonly stepBefore: (made: C) => number;
  readonly answerOf: (store: Store, made: C) => Promise<unknown>;
  /** Answers that the histories of a test have to come to, or they compare little. */
  readonly reached: readonly string[];
  readonly cameTo: (made: C, answer: unknown) => readonly string[];
}

/** Calls for events, of any kind. */
export const EVENT_CALLS: Calls<Call | StreamCall> = {
  histories,
  stepBefore,
  answerOf,
  reached: REACHED,
  cameTo,
};
