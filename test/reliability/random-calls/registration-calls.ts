import * as fc from 'fast-check';
import type { Store } from '../../../src/index.ts';
import type {
  AcceptRequest,
  RegistrationKind,
  RegistrationRow,
  RegistrationRows,
} from '../../../src/stores/index.ts';
import { listedIds, registrationsOf } from '../../../src/testing/for-tests.ts';
import type { Calls } from './calls.ts';
import { acceptRequest } from '../../stores/requests.ts';

/** A call of `StoreRegistrations`, or of an event of a task that its rows follow; each reads of it what it needs. */
interface RegistrationCall {
  readonly does: 'save' | 'add' | 'get' | 'due' | 'page' | 'accept' | 'apply' | 'follow' | 'wait';
  readonly kind: RegistrationKind;
  readonly sender: string;
  readonly id: string;
  readonly list: string | null;
  readonly when: keyof typeof WHEN;
  readonly limit: number;
}

/** What `wait` waits, ms. No other time here is a multiple of it, nor nearly so: how slow a machine is changes no answer. */
const HOUR_MS = 3_600_000;
const HOLD_MS = 5_407_000;
const LEASE_MS = 597_000;
/** Longer than all that is waited for. */
const RETENTION_MS = 100 * 24 * HOUR_MS;

const SENDERS = ['https://a.example/mcp', 'https://b.example/mcp', ''];

/** From now on, ms. */
const WHEN = {
  never: {},
  due: { dueIn: -1000 },
  soon: { dueIn: 1_501_000 },
  later: { dueIn: 5_003_000 },
  gone: { expiresIn: -1000 },
  expires: { expiresIn: 5_003_000 },
} as const satisfies Readonly<Record<string, { dueIn?: number; expiresIn?: number }>>;

const histories: fc.Arbitrary<readonly RegistrationCall[]> = fc.array(
  fc.record({
    does: fc.constantFrom(
      ...(['save', 'save', 'save', 'add', 'get', 'due', 'page', 'wait'] as const),
      ...(['accept', 'accept', 'apply', 'apply', 'apply', 'follow', 'follow'] as const),
    ),
    kind: fc.constantFrom('operation', 'watch', 'route'),
    sender: fc.constantFrom(...SENDERS),
    id: fc.constantFrom('1', '2', 'i'.repeat(600)),
    list: fc.constantFrom(null, 'open', 'done'),
    when: fc.constantFrom(...(Object.keys(WHEN) as (keyof typeof WHEN)[])),
    limit: fc.constantFrom(1, 2, 100),
  }),
  { minLength: 1, maxLength: 40, size: 'max' },
);

/** Without its instants, which a store whose clock goes on has its own of. */
function timeless({ dueAt, expiresAt, ...row }: RegistrationRow): object {
  return { ...row, isDue: dueAt !== null, expires: expiresAt !== null };
}

async function save(
  store: Store,
  call: RegistrationCall,
  valueOf: (value: string) => string,
): Promise<string> {
  const { kind, sender, id, list } = call;
  const { dueIn, expiresIn }: { dueIn?: number; expiresIn?: number } =
    sender === '' && 'dueIn' in WHEN[call.when] ? {} : WHEN[call.when];
  return registrationsOf(store).run(sender, (rows, now) => {
    const value = valueOf(rows.get(kind, id)?.value ?? '');
    rows.save({
      kind,
      sender,
      id,
      value,
      dueAt: dueIn === undefined ? null : now + dueIn,
      list,
      expiresAt: expiresIn === undefined ? null : now + expiresIn,
    });
    return value;
  });
}

/** A status of a task, by a webhook or, of kind `watch`, by a poll. */
function statusOf({ kind, sender, id, list }: RegistrationCall): AcceptRequest {
  const isPolled = kind === 'watch';
  const key = `event-${list}-${kind}-${id.length}`;
  const { nonce: _none, event, ...request } = acceptRequest({ key, sender, body: key });
  const terminal = list === 'done';
  const status = terminal ? 'completed' : 'working';
  const task = { id, terminal, told: { source: isPolled ? 'poll' : 'webhook', status } } as const;
  return {
    ...request,
    acceptId: key,
    mode: isPolled ? 'inbox' : 'inline',
    ...(event && { event: { ...event, task } }),
    leaseMs: LEASE_MS,
    retentionMs: RETENTION_MS,
  };
}

/** Watches a task until it has ended, in one step with the look at its end; what was applied last is noted. */
function follow(rows: RegistrationRows, now: number, { sender, id }: RegistrationCall): unknown {
  const end = rows.taskEnd(id);
  const status = rows.lastTold(id)?.status;
  const before = rows.get('watch', id)?.value;
  const isOver = end === 'done';
  rows.save({
    kind: 'watch',
    sender,
    id,
    value: `${before?.slice(-20)} ${status}`,
    dueAt: isOver ? null : now + WHEN.soon.dueIn,
    list: isOver ? 'done' : 'open',
    expiresAt: null,
  });
  return { end, status, before };
}

async function answerOf(store: Store, call: RegistrationCall): Promise<unknown> {
  const { does, kind, sender, id, list, limit } = call;
  if (does === 'accept' || does === 'apply' || does === 'follow') {
    // What belongs to no sender has no events, and is not due.
    return sender === '' ? undefined : ofTask(store, call);
  }
  if (does === 'save') return save(store, call, () => `${list} ${call.when}`);
  if (does === 'add') return save(store, call, (value) => `${value}+`.slice(-10));
  if (does === 'get') {
    const row = await registrationsOf(store).run(sender, (rows) => rows.get(kind, id));
    return row && timeless(row);
  }
  if (does === 'due') {
    // All: of those that are due at once each store may give others first.
    const due = await registrationsOf(store).due({ kind, max: 1000, holdMs: HOLD_MS, senders: [] });
    const next = due.nextDueMs === undefined ? undefined : Math.round(due.nextDueMs / 1_800_000);
    const names = due.rows.map((row) => `${row.sender} ${row.id} ${row.value} ${row.list}`);
    return { names: names.toSorted(), next };
  }
  if (does === 'page') {
    // A long id stands where its hash does.
    const found = await listedIds(store, {
      kind,
      limit,
      ...(list !== null && { list }),
      ...(limit > 1 && { sender }),
    });
    return found.toSorted();
  }
  return undefined;
}

async function ofTask(store: Store, call: RegistrationCall): Promise<unknown> {
  const { does, sender } = call;
  if (does === 'follow') {
    return registrationsOf(store).run(sender, (rows, now) => follow(rows, now, call));
  }
  const request = statusOf(call);
  const { kind } = await store.accept(request);
  if (does === 'accept') return kind;
  const { acceptId: owner, event } = request;
  const ended = await store.complete({ sender, key: event?.key ?? '', owner, retentionMs: RETENTION_MS });
  return [kind, ended];
}

/** Of tasks, what plans were told by `follow`. */
interface Followed {
  readonly end: string | undefined;
  readonly status: string | undefined;
}

/** Calls for registrations, with events of the tasks that they follow. */
export const REGISTRATION_CALLS: Calls<RegistrationCall> = {
  histories,
  stepBefore: ({ does }) => (does === 'wait' ? HOUR_MS : 0),
  answerOf,
  reached: ['undefined', 'unsafe', 'safe', 'done', 'working', 'completed'].map((said) => `told ${said}`),
  cameTo: ({ does }, answer) => {
    if (does !== 'follow' || answer === undefined) return [];
    const { end, status } = answer as Followed;
    return [`told ${end}`, `told ${status}`];
  },
};
