// Implements `receiver.inbox`: operators list stored events, run them again, or end them (admission.md §4.10).
// The receiver loads it through `work.ts`; the command `proto-webhooks inbox` uses its functions without a receiver.

import { flag, oneOf, onlyKnown, text, wholeNumber } from '../config/validate.ts';
import { deliveryId } from '../shared/delivery.ts';
import { ConfigError, Fault } from '../shared/errors.ts';
import type { Lifecycle } from '../receiver/lifecycle.ts';
import { boundLogger } from '../shared/logging.ts';
import type { ReadyContext, ReceiverContext } from '../receiver/context.ts';
import { acceptAlone } from '../stages/admit.ts';
import { announce, hasDied } from '../stages/announce.ts';
import { dispatch } from '../stages/dispatch.ts';
import { storedEvent, tellEnded } from '../stages/on-handled.ts';
import { giveBack } from '../stages/give-back.ts';
import { idsOf } from '../stages/ids.ts';
import { type ReadContext, claimOf } from '../stages/read.ts';
import { settle, type SettleDelivery } from '../stages/settle.ts';
import {
  type FirstCopy,
  originOf,
  readStored,
  started,
  type AdmittedEvent,
} from '../stages/admitted-event.ts';
import type {
  InboxCount,
  InboxQuery,
  InboxRecord,
  StoreInbox,
  AcceptDecision,
  AcceptRequest,
} from '../stores/store.ts';
import type {
  DiscardManyQuery,
  InboxListQuery,
  InboxStats,
  ManyResult,
  ReceiverInbox,
  RedriveManyQuery,
  SeenEvent,
  SenderStats,
  RedriveResult,
} from './inbox-contract.ts';

/** A stored event that must run now, with its stored body and the event that was parsed from it. */
interface Kept {
  readonly sender: string;
  readonly key: string;
  readonly body: Uint8Array;
  readonly copy: FirstCopy;
}

/** Builds the store request of a webhook with the same body. It has no nonce, because there is no new signature. */
function acceptRequest({ sender, body, copy }: Kept, context: ReadyContext): AcceptRequest {
  const { config, hashes, registrations } = context;
  const known = config.senders.fixed?.find(({ agentUrl }) => agentUrl === sender);
  return {
    acceptId: context.newId(),
    sender,
    mode: 'inline',
    event: claimOf(body, copy, { edition: known?.edition ?? config.edition, hashes, registrations }),
    leaseMs: config.leaseMs,
    process: context.running.process(),
    limits: config.limits,
    retry: config.retry,
    retentionMs: config.retentionMs,
  };
}

type Win = Extract<AcceptDecision, { kind: 'won' }>;

async function runHere(
  { sender, key, copy }: Kept,
  win: Win,
  context: ReadyContext,
  background: SettleDelivery['background'],
): Promise<RedriveResult> {
  const id = deliveryId(context.hashes, sender, key);
  const arrivedAt = context.now();
  const log = boundLogger(context.logger, { sender, key, deliveryId: id });
  const origin = originOf(context.config, sender);
  // `once: true`: a failed handler makes the event DEAD immediately, because no seller and no worker would run it
  // again.
  const won: AdmittedEvent = {
    kind: 'won',
    origin,
    key,
    deliveryId: id,
    lease: win.lease,
    flags: win,
    url: copy.event.url,
    firstCopy: () => copy,
    once: true,
  };
  const run = started(won, context.running);
  if (!run) {
    await giveBack({ sender, key, owner: win.lease.owner }, context);
    return 'busy';
  }
  const result = await settle(await dispatch(run, context, log), context, { log, background, arrivedAt });
  // `busy`: the handler goes on after its deadline, or another process has taken the lease of the event.
  return result.kind === 'settled' ? result.state : 'busy';
}

const BUSY: ReadonlySet<AcceptDecision['kind']> = new Set(['in-flight', 'task-busy', 'backing-off'] as const);

function resultOf(decision: Exclude<AcceptDecision, Win>): RedriveResult {
  if (decision.kind === 'done') return decision.state;
  if (decision.kind === 'stale') return 'stale';
  return BUSY.has(decision.kind) ? 'busy' : 'other';
}

/**
 * Runs the handler of a DEAD or stuck event (`isStuck`) in this process, for mode `inline` (admission.md §4.10).
 * @throws Fault `misconfigured` if the stored body can no longer be read; nothing has changed then.
 */
export async function redriveInline(
  { sender, key }: Pick<Kept, 'sender' | 'key'>,
  inbox: StoreInbox,
  context: ReadyContext,
  background: SettleDelivery['background'],
): Promise<RedriveResult> {
  const record = await inbox.inspect(sender, key);
  if (!record) return 'absent';
  const { body } = record;
  if (!body) return 'other';
  // An event that already runs in this process is not started again, even if its lease has expired.
  const id = deliveryId(context.hashes, sender, key);
  if (context.running.has(id)) return 'busy';
  const kept = {
    sender,
    key,
    body,
    copy: readStored(originOf(context.config, sender), { ...record, body }, context),
  };
  if (record.state === 'dead') await inbox.redrive(sender, key);
  const decision = await acceptAlone(acceptRequest(kept, context), id, context);
  announce(decision, { sender, key }, context.raiseAlarm);
  if (hasDied(decision)) await tellEnded({ sender, key }, 'dead', context);
  if (decision.kind !== 'won') return resultOf(decision);
  return runHere(kept, decision, context, background);
}

/** Adds to a stored event the ids by which alarms and log lines name it. */
export function seenEvent(record: InboxRecord, context: ReadContext): SeenEvent {
  const { sender, key } = record;
  return {
    ...record,
    deliveryId: deliveryId(context.hashes, sender, key),
    ...idsOf(storedEvent(record, context)),
  };
}

const STATES = ['queued', 'leased', 'dead'] as const;
/** DEAD events come first, because an event that becomes DEAD by its run here must not run here again. */
const DEAD_FIRST = ['dead', 'queued', 'leased'] as const;

/** The number of records that one call of the store returns, and so the most that are in memory together. */
const PAGE = 1_000;
/** The most events that are processed together. More could take all connections, and deliveries would have to wait. */
export const WIDTH = 4;

type Pages = Pick<StoreInbox, 'list'>;
type Counted = Pick<StoreInbox, 'list' | 'counts'>;

/** Yields the events of one state in pages, oldest first, each at most once. Events added meanwhile may be missed. */
async function* pagesOf(inbox: Pages, query: Omit<InboxQuery, 'limit' | 'after'>) {
  let after: string | undefined;
  do {
    const page = await inbox.list({ ...query, limit: PAGE, ...(after !== undefined && { after }) });
    yield page.records;
    after = page.next;
  } while (after !== undefined);
}

async function* pagesOfStates(
  inbox: Pages,
  states: readonly InboxQuery['state'][],
  sender: string | undefined,
) {
  for (const state of states) yield* pagesOf(inbox, { state, ...(sender !== undefined && { sender }) });
}

/** True if the event's webhook was answered 200, so that the seller does not send it again, but it is not handled. */
const isStuck = ({ acked, source = 'webhook' }: InboxRecord): boolean => acked && source === 'webhook';

/** Counts events for `stats`. If the store has no `counts`, reads pages until a state has `most` events. */
export async function statsOf(inbox: Counted, most: number): Promise<InboxStats> {
  const counts = { queued: 0, leased: 0, dead: 0 };
  const found = await inbox.counts?.();
  if (found) {
    for (const { state, count } of found) counts[state] += count;
    return { ...counts, senders: found.toSorted(byState), isComplete: true };
  }
  const senders = new Map<string, SenderStats>();
  let isComplete = true;
  for (const state of STATES) {
    for await (const records of pagesOf(inbox, { state })) {
      for (const { sender, insertedAt } of records) {
        counts[state] += 1;
        const name = JSON.stringify([sender, state]);
        const { count = 0, oldestInsertedAt = insertedAt } = senders.get(name) ?? {};
        const oldest = Math.min(oldestInsertedAt, insertedAt);
        senders.set(name, { sender, state, count: count + 1, oldestInsertedAt: oldest });
      }
      if (counts[state] < most) continue;
      isComplete = false;
      break;
    }
  }
  return { ...counts, senders: [...senders.values()], isComplete };
}

const byState = (one: InboxCount, other: InboxCount): number =>
  STATES.indexOf(one.state) - STATES.indexOf(other.state) || (one.sender < other.sender ? -1 : 1);

/** Returns the checked `most` of a query of `stats`. @throws ConfigError for an unknown member or a wrong `most`. */
export function checkedStats(query: { readonly most?: number } = {}): number {
  onlyKnown('inbox.stats', query, { most: true });
  return wholeNumber('inbox.stats: most', query.most, 100_000);
}

const FILTER_NAMES = { sender: true, before: true, error: true, dryRun: true } as const;

/** The checked query of `redriveMany` or `discardMany`. */
export interface Filter {
  readonly state: 'dead' | 'queued';
  readonly sender?: string;
  readonly before: number;
  readonly error: string;
  readonly dryRun: boolean;
  /** True to include stuck events (`isStuck`). They wait for a worker, and mode `inline` may have no worker. */
  readonly withStuck?: boolean;
}

/** Checks the query. An unknown member is refused: a misspelt condition would match every event. @throws ConfigError */
export function checkedFilter(
  method: 'redriveMany' | 'discardMany',
  query: RedriveManyQuery | DiscardManyQuery | undefined,
): Filter {
  const where = `inbox.${method}`;
  const names = method === 'discardMany' ? { ...FILTER_NAMES, state: true as const } : FILTER_NAMES;
  onlyKnown(where, query ?? {}, names);
  const { sender, before, error, dryRun, state }: Partial<DiscardManyQuery> = query ?? {};
  if (dryRun === undefined) {
    throw new ConfigError(`${where}: dryRun is missing. Set true to count only, false to change them.`);
  }
  return {
    state: oneOf(`${where}: state`, state, ['dead', 'queued']) ?? 'dead',
    ...(sender !== undefined && { sender: text(`${where}: sender`, sender) }),
    before: before === undefined ? Infinity : wholeNumber(`${where}: before`, before, 0, 0),
    error: error === undefined ? '' : text(`${where}: error`, error),
    dryRun: flag(`${where}: dryRun`, dryRun),
  };
}

/**
 * Calls `act` once for each matching event, for `width` events at a time, even if an event becomes DEAD again.
 * If `act` rejects, the changes so far stay, and a further call of `actOnMany` handles the remaining events.
 * @param act changes one event and returns the result.
 */
export async function actOnMany<R extends string>(
  inbox: Pages,
  { state, sender, before, error, dryRun, withStuck }: Filter,
  width: number,
  act: (record: InboxRecord) => Promise<R>,
): Promise<ManyResult<R>> {
  const senders: Record<string, number> = {};
  const results: Partial<Record<R, number>> = {};
  let matched = 0;
  const one = async (record: InboxRecord): Promise<void> => {
    const result = await act(record);
    results[result] = (results[result] ?? 0) + 1;
  };
  const fits = (record: InboxRecord): boolean =>
    record.insertedAt < before &&
    (record.lastError ?? '').includes(error) &&
    (record.state === state || isStuck(record));
  for await (const records of pagesOfStates(inbox, withStuck === true ? DEAD_FIRST : [state], sender)) {
    const fitting = records.filter(fits);
    matched += fitting.length;
    for (const record of fitting) senders[record.sender] = (senders[record.sender] ?? 0) + 1;
    if (!dryRun) {
      for (let at = 0; at < fitting.length; at += width) {
        await Promise.all(fitting.slice(at, at + width).map(one));
      }
    }
  }
  return { matched, senders, results };
}

const LIST_DEFAULT = 100;
const LIST_MOST = 1_000;
const QUERY_NAMES = { state: true, sender: true, limit: true, after: true } as const;

/** Checks the query of `list`. A mistake must not look like an empty inbox, so it is refused. @throws ConfigError */
function checkedQuery(query: InboxListQuery | undefined): InboxQuery {
  const { limit, state, sender, after }: Partial<InboxListQuery> = query ?? {};
  // An unknown name is refused: with `next` in place of `after`, the first page would be returned again and again.
  onlyKnown('inbox.list', query ?? {}, QUERY_NAMES);
  if (state === undefined) throw new ConfigError(`inbox.list: state is missing: ${STATES.join(', ')}.`);
  oneOf('inbox.list: state', state, STATES);
  return {
    state,
    limit: wholeNumber('inbox.list: limit', limit, LIST_DEFAULT, 1, LIST_MOST),
    ...(sender !== undefined && { sender: text('inbox.list: sender', sender) }),
    ...(after !== undefined && { after: text('inbox.list: after', after) }),
  };
}

/** Checks the sender and the idempotency key of one event. @throws ConfigError */
function checkKey(method: string, sender: string, key: string): void {
  text(`inbox.${method}: sender`, sender);
  text(`inbox.${method}: idempotencyKey`, key);
}

/** Counts the work as a running delivery, so that `stop()` waits for it. */
async function counted<T>({ arrived, answered }: Lifecycle, work: () => Promise<T>): Promise<T> {
  arrived();
  try {
    return await work();
  } finally {
    answered();
  }
}

/** Creates `receiver.inbox`. Its `redrive` depends on the receiver's mode. */
export function createReceiverInbox(context: ReceiverContext, lifecycle: Lifecycle): ReceiverInbox {
  const { store, startup, config, wakeSignal } = context;

  /**
   * Waits for the startup check, and returns the store's inbox.
   * @throws ConfigError: no inbox, or the check failed. Fault: the store is unreachable, or the receiver stops.
   */
  async function opened(): Promise<{ readonly inbox: StoreInbox; readonly ready: ReadyContext }> {
    if (!store.inbox) {
      throw new ConfigError(
        `receiver.inbox: the ${store.name} store has no inbox. Use one that has: SQLite, Postgres, MySQL, Redis.`,
      );
    }
    if (lifecycle.stopping()) throw new Fault('shutting_down', 'the receiver stops');
    return { ready: await startup.passed(), inbox: store.inbox };
  }

  async function redrive(sender: string, key: string): ReturnType<ReceiverInbox['redrive']> {
    checkKey('redrive', sender, key);
    const { inbox, ready } = await opened();
    if (config.mode === 'inline') {
      return redriveInline({ sender, key }, inbox, ready, lifecycle.background);
    }
    const result = await inbox.redrive(sender, key);
    if (result === 'queued') wakeSignal.notify();
    return result;
  }

  /** Processes one of many events; `stop()` waits for it. @throws Fault `shutting_down` if the receiver is stopping. */
  function unlessStopping<T>(work: () => Promise<T>): Promise<T> {
    if (lifecycle.stopping()) throw new Fault('shutting_down', 'the receiver stops');
    return counted(lifecycle, work);
  }

  return {
    list: async (query) => {
      const checked = checkedQuery(query);
      const { inbox, ready } = await opened();
      const page = await inbox.list(checked);
      return { ...page, records: page.records.map((record) => seenEvent(record, ready)) };
    },
    inspect: async (sender, key) => {
      checkKey('inspect', sender, key);
      const { inbox, ready } = await opened();
      const record = await inbox.inspect(sender, key);
      return record && seenEvent(record, ready);
    },
    redrive: (sender, key) => counted(lifecycle, () => redrive(sender, key)),
    discard: async (sender, key) => {
      checkKey('discard', sender, key);
      return (await opened()).inbox.discard(sender, key, config.retentionMs);
    },
    stats: async (query) => {
      const most = checkedStats(query);
      return statsOf((await opened()).inbox, most);
    },
    redriveMany: async (query) => {
      const filter = checkedFilter('redriveMany', query);
      const { inbox } = await opened();
      const withStuck = config.mode === 'inline';
      return actOnMany(inbox, { ...filter, withStuck }, withStuck ? 1 : WIDTH, ({ sender, key }) =>
        unlessStopping(() => redrive(sender, key)),
      );
    },
    discardMany: async (query) => {
      const filter = checkedFilter('discardMany', query);
      const { inbox } = await opened();
      return actOnMany(inbox, filter, WIDTH, ({ sender, key }) =>
        unlessStopping(() => inbox.discard(sender, key, config.retentionMs, filter.state)),
      );
    },
  };
}
