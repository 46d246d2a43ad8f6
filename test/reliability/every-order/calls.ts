import type {
  AcceptRequest,
  RegistrationKind,
  RegistrationRow,
  RegistrationRows,
  ToldClaim,
} from '../../../src/stores/index.ts';
import { registrationsOf } from '../../../src/testing/for-tests.ts';
import { acceptRequest, RETENTION_MS } from '../../stores/requests.ts';
import type { Call } from './one-by-one.ts';

/** Calls about one task of one seller, and rows beside it. */

const SENDER = 'https://seller.example/mcp';
const TASK = 'task';
const HOLD_MS = 60_000;

type Source = ToldClaim['source'];

/** Without a nonce: none comes again here. */
function status(source: Source, says: 'working' | 'completed', second: number): AcceptRequest {
  const key = `${says}, by a ${source}`;
  const { nonce: _none, event, ...request } = acceptRequest({ key, sender: SENDER });
  const claim = {
    id: TASK,
    ...(source === 'webhook' && { instant: `00000000000${second}.`, instantMs: second * 1000 }),
    terminal: says === 'completed',
    told: { source, status: says, ...(source !== 'webhook' && { askedAt: 0 }) },
  };
  return {
    ...request,
    acceptId: key,
    mode: source === 'webhook' ? 'inline' : 'inbox',
    ...(event && { event: { ...event, task: claim } }),
  };
}

const accept = (request: AcceptRequest): Call => ({
  name: `accept(${request.acceptId})`,
  make: async (store) => (await store.accept(request)).kind,
});

const ofLease = ({ sender, acceptId: owner }: AcceptRequest) =>
  ({ sender, key: owner, owner, retentionMs: RETENTION_MS }) as const;

const complete = (request: AcceptRequest): Call => ({
  name: `complete(${request.acceptId})`,
  make: (store) => store.complete(ofLease(request)),
});

const WORKING = status('webhook', 'working', 1);
const END = status('webhook', 'completed', 2);

export const acceptStatus: Call = accept(WORKING);
export const acceptEnd: Call = accept(END);
export const observeEnd: Call = accept(status('poll', 'completed', 2));
export const completeEnd: Call = complete(END);
export const completeStatus: Call = complete(WORKING);
/** Of no task, where one more row has room: rows of registrations count too. */
export const acceptLast: Call = {
  name: 'accept, of 4 records at most',
  make: async (store) => {
    const { nonce: _none, ...request } = acceptRequest({ key: 'last', sender: SENDER });
    const limits = { ...request.limits, maxRecordsPerSender: 4 };
    return (await store.accept({ ...request, acceptId: 'last', limits })).kind;
  },
};

export const failEnd: Call = {
  name: 'fail for good',
  make: (store) =>
    store.fail({ ...ofLease(END), permanent: true, retry: { attempts: 9, crashes: 9 }, backoffMs: 0 }),
};

const run = (name: string, plan: (rows: RegistrationRows, now: number) => unknown): Call => ({
  name,
  make: (store) => registrationsOf(store).run(SENDER, plan),
});

const row = (kind: RegistrationKind, id: string, more: Partial<RegistrationRow> = {}): RegistrationRow => ({
  kind,
  sender: SENDER,
  id,
  value: '',
  dueAt: null,
  list: null,
  expiresAt: null,
  ...more,
});

type TaskEnd = ReturnType<RegistrationRows['taskEnd']>;

/** Watches a task that has no end, and stops when it is done; notes which status was applied last. */
function follow(rows: RegistrationRows, now: number, end: TaskEnd): unknown {
  const told = rows.lastTold(TASK)?.status;
  const watch = rows.get('watch', TASK);
  if (end === undefined) rows.save(row('watch', TASK, { value: `${told}`, dueAt: now, list: 'watched' }));
  if (end === 'done') rows.save(row('watch', TASK, { value: `${told}`, list: 'ended' }));
  return [end, told, watch?.list, watch?.value];
}

export const followTask: Call = run('run: follow', (rows, now) => follow(rows, now, rows.taskEnd(TASK)));

/** Wrong: whether the task has ended is read in a step of its own. */
export const followByOldEnd: Call = {
  name: 'run: read the end; run: follow',
  make: async (store) => {
    const registrations = registrationsOf(store);
    const end = await registrations.run(SENDER, (rows) => rows.taskEnd(TASK));
    return registrations.run(SENDER, (rows, now) => follow(rows, now, end));
  },
};

/** What one row gives the other one gets. */
const moved = (rows: RegistrationRows): readonly number[] =>
  (['operation', 'route'] as const).map((kind) => Number(rows.get(kind, 'count')?.value ?? 0));

export const move: Call = run('run: move one from row to row', (rows) => {
  const [from = 0, to = 0] = moved(rows);
  rows.save(row('operation', 'count', { value: String(from - 1) }));
  rows.save(row('route', 'count', { value: String(to + 1) }));
  return [from, to];
});

/** Each of the two saves a row of its own where the other's is not there. */
const first = (own: RegistrationKind, other: RegistrationKind): Call =>
  run(`run: ${own} unless ${other}`, (rows) => {
    const isFirst = !rows.get(other, 'first');
    if (isFirst) rows.save(row(own, 'first'));
    return isFirst;
  });

export const operationFirst: Call = first('operation', 'route');
export const routeFirst: Call = first('route', 'operation');

export const dueWatch: Call = {
  name: 'due',
  make: async (store) => {
    const { rows } = await registrationsOf(store).due({
      kind: 'watch',
      max: 10,
      holdMs: HOLD_MS,
      senders: [SENDER],
    });
    return rows.map(({ id, value, list }) => [id, value, list]);
  },
};

/** How far the task is, and whether it is watched. */
export const lookAtTask: Call = run('run: look', (rows) => {
  const { list, value, dueAt } = rows.get('watch', TASK) ?? {};
  return [rows.taskEnd(TASK), rows.lastTold(TASK), list, value, dueAt];
});

/** All that the others read and write, at one moment. */
export const lookAtAll: Call = run('run: look at all', (rows) => {
  const { list, value, dueAt } = rows.get('watch', TASK) ?? {};
  const firsts = (['operation', 'route'] as const).map((kind) => rows.get(kind, 'first')?.kind);
  return [rows.taskEnd(TASK), rows.lastTold(TASK), list, value, dueAt, ...moved(rows), ...firsts];
});
