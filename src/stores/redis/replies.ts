import type {
  AcceptDecision,
  AcceptRequest,
  AcceptResult,
  InboxRecord,
  LeasedEvent,
  LeaseDueResult,
  Pressure,
} from '../contract.ts';
import { fromColumnText } from '../text.ts';

/** What a script answered, by name. */
export interface Reply {
  readonly has: (name: string) => boolean;
  readonly text: (name: string) => string;
  readonly number: (name: string) => number;
  readonly bytes: (name: string) => Uint8Array;
  readonly list: (name: string) => readonly unknown[];
}

const decoder = new TextDecoder();

/** A reply that is one text. */
export function textOf(value: unknown): string {
  return value instanceof Uint8Array ? decoder.decode(value) : String(value);
}

/** Names and values by turns. */
export function replyOf(value: unknown): Reply {
  const values = new Map<string, unknown>();
  const turns = Array.isArray(value) ? (value as readonly unknown[]) : [];
  for (let at = 0; at + 1 < turns.length; at += 2) values.set(textOf(turns[at]), turns[at + 1]);
  return {
    has: (name) => values.has(name),
    text: (name) => fromColumnText(textOf(values.get(name))),
    number: (name) => Number(textOf(values.get(name))),
    // A copy: the client's buffer may be a view into what else it received.
    bytes: (name) => new Uint8Array(values.get(name) as Uint8Array),
    list: (name) => (values.get(name) ?? []) as readonly unknown[],
  };
}

const changedOf = (reply: Reply): { changed: boolean } => ({ changed: reply.number('changed') === 1 });

/** What `told` says in Lua. */
function leaseOf(
  reply: Reply,
): Pick<LeasedEvent, 'lease' | 'reemission' | 'afterTerminal' | 'afterFinal' | 'ahead'> {
  return {
    lease: { owner: reply.text('owner'), fence: reply.number('fence'), attempt: reply.number('attempt') },
    reemission: reply.has('reemission'),
    afterTerminal: reply.has('afterTerminal'),
    afterFinal: reply.has('afterFinal'),
    ahead: reply.has('ahead'),
  };
}

type Kind = AcceptDecision['kind'];

const DECISION: Record<Kind, (reply: Reply) => AcceptDecision> = {
  won: (reply) => ({
    kind: 'won',
    ...changedOf(reply),
    ...leaseOf(reply),
    ...(reply.has('body') && { body: reply.bytes('body') }),
  }),
  queued: (reply) => ({
    kind: 'queued',
    ...changedOf(reply),
    reemission: reply.has('reemission'),
    ahead: reply.has('ahead'),
  }),
  done: (reply) => ({
    kind: 'done',
    ...changedOf(reply),
    state: reply.text('state') as 'applied' | 'stale' | 'dead',
    died: reply.has('died'),
  }),
  'in-flight': (reply) => ({ kind: 'in-flight', ...changedOf(reply) }),
  'task-busy': (reply) => ({ kind: 'task-busy', ...changedOf(reply) }),
  stale: (reply) => ({ kind: 'stale', ...changedOf(reply) }),
  'over-cap': (reply) => ({ kind: 'over-cap', limit: reply.text('limit') as 'records' | 'pending-bytes' }),
  conflict: () => ({ kind: 'conflict' }),
  burned: () => ({ kind: 'burned' }),
  replayed: () => ({ kind: 'replayed' }),
  'rate-abuse': () => ({ kind: 'rate-abuse' }),
};

/** Of the script accept. */
export interface AcceptAnswer {
  readonly result: AcceptResult;
  /** Live ones of the sender, this one included. */
  readonly nonces: number;
  /** Store's clock, Unix ms. */
  readonly now: number;
}

/** A text where the accept was an ordinary one (`lua/ordinary.ts`), else a list (`lua/accept.ts`). */
export function answerOf(value: unknown, request: AcceptRequest): AcceptAnswer {
  if (!Array.isArray(value)) return ordinaryAnswer(textOf(value), request);
  const reply = replyOf(value);
  const names = reply.text('pressure');
  const pressure = names === '' ? [] : (names.split(',') as Pressure[]);
  const decision = DECISION[reply.text('kind') as Kind](reply);
  return {
    result: { ...decision, pressure },
    nonces: reply.number('nonces'),
    now: reply.number('now'),
  };
}

/** Now, nonces, ahead: the rest follows from the request. */
function ordinaryAnswer(text: string, { acceptId }: AcceptRequest): AcceptAnswer {
  const [now, nonces, ahead] = text.split(' ');
  return {
    result: {
      kind: 'won',
      changed: false,
      lease: { owner: acceptId, fence: 1, attempt: 1 },
      reemission: false,
      afterTerminal: false,
      afterFinal: false,
      ahead: ahead === '1',
      pressure: [],
    },
    nonces: Number(nonces),
    now: Number(now),
  };
}

/** Of the script `lease`, of one sender. */
export function leaseResult(sender: string, reply: Reply): LeaseDueResult {
  return {
    events: reply.list('events').map((event) => leasedEvent(sender, replyOf(event))),
    died: reply.list('died').map((key) => ({ sender, key: fromColumnText(textOf(key)) })),
    ...(reply.has('next') && { nextDueMs: reply.number('next') }),
  };
}

function leasedEvent(sender: string, reply: Reply): LeasedEvent {
  return { sender, key: reply.text('key'), body: reply.bytes('body'), ...leaseOf(reply) };
}

/** Of `seenRecord` in Lua. */
export function inboxRecord(sender: string, reply: Reply): InboxRecord {
  return {
    sender,
    key: reply.text('key'),
    state: reply.text('state') as InboxRecord['state'],
    acked: reply.number('acked') === 1,
    attempts: reply.number('attempts'),
    crashes: reply.number('crashes'),
    insertedAt: reply.number('insertedAt'),
    notBefore: reply.number('notBefore'),
    leaseUntil: reply.number('leaseUntil'),
    bodyBytes: reply.number('bodyBytes'),
    ...(reply.has('taskId') && { taskId: reply.text('taskId') }),
    ...(reply.has('lastError') && { lastError: reply.text('lastError') }),
    ...(reply.has('body') && { body: reply.bytes('body') }),
  };
}
