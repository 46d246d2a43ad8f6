import { flag, oneOf, onlyKnown, text, wholeNumber } from '../config/validate.ts';
import { deliveryId } from '../delivery.ts';
import { ConfigError, Fault } from '../errors.ts';
import type { Lifecycle } from '../lifecycle.ts';
import type { ReadyContext, Parts } from '../parts.ts';
import { storedEvent } from '../stages/ended.ts';
import { idsOf } from '../stages/ids.ts';
import type { ReadContext } from '../stages/read.ts';
import type { InboxQuery, InboxRecord, StoreInbox } from '../stores/contract.ts';
import type {
  DiscardManyQuery,
  InboxListQuery,
  InboxStats,
  ManyResult,
  ReceiverInbox,
  RedriveManyQuery,
  SeenEvent,
  SenderStats,
} from './contract.ts';
import { redriveInline } from './redrive.ts';

/** A record with the ids by which alarms and log lines name it. */
export function seenEvent(record: InboxRecord, context: ReadContext): SeenEvent {
  const { sender, key } = record;
  return {
    ...record,
    deliveryId: deliveryId(context.hashes, sender, key),
    ...idsOf(storedEvent(record, context)),
  };
}

/** Records in one call of the store: what is held in memory at once. */
const PAGE = 1_000;
/** Events worked on at a time: more would fill a pool of connections, and deliveries would wait behind it. */
export const WIDTH = 4;

type Pages = Pick<StoreInbox, 'list'>;

/** Oldest first. An event that changes its state meanwhile is seen at most once, and one that comes meanwhile maybe. */
async function* pagesOf(inbox: Pages, query: Omit<InboxQuery, 'limit' | 'after'>) {
  let after: string | undefined;
  do {
    const page = await inbox.list({ ...query, limit: PAGE, ...(after !== undefined && { after }) });
    yield page.records;
    after = page.next;
  } while (after !== undefined);
}

/** `ReceiverInbox.stats`. */
export async function statsOf(inbox: Pages, most: number): Promise<InboxStats> {
  const counts = { queued: 0, leased: 0, dead: 0 };
  const senders = new Map<string, SenderStats>();
  let isComplete = true;
  for (const state of ['queued', 'leased', 'dead'] as const) {
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

/** @throws ConfigError for a limit that is none. */
export function checkedStats(query: { readonly most?: number } = {}): number {
  onlyKnown('inbox.stats', query, { most: true });
  return wholeNumber('inbox.stats: most', query.most, 100_000);
}

const FILTER_NAMES = { sender: true, before: true, error: true, dryRun: true } as const;

/** Which events, checked. */
export interface Filter {
  readonly state: 'dead' | 'queued';
  readonly sender?: string;
  readonly before: number;
  readonly error: string;
  readonly dryRun: boolean;
}

/**
 * Callers in JavaScript too: a filter that is misspelt would take every event.
 * @throws ConfigError
 */
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
 * Each event that fits, once: what becomes DEAD again meanwhile is passed already. Where it rejects, those that were
 * changed are changed, and the next call takes the others.
 * @param width how many at a time.
 * @param act changes one, and says what came of it.
 */
export async function actOnMany<R extends string>(
  inbox: Pages,
  { state, sender, before, error, dryRun }: Filter,
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
  for await (const records of pagesOf(inbox, { state, ...(sender !== undefined && { sender }) })) {
    const fitting = records.filter(
      ({ insertedAt, lastError = '' }) => insertedAt < before && lastError.includes(error),
    );
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
const STATES = ['queued', 'leased', 'dead'] as const;

/** Callers in JavaScript too: a mistake must not look like an empty inbox. @throws ConfigError */
function checkedQuery(query: InboxListQuery | undefined): InboxQuery {
  const { limit, state, sender, after }: Partial<InboxListQuery> = query ?? {};
  // `next` for `after` would give the first page again and again.
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

/** @throws ConfigError */
function checkKey(method: string, sender: string, key: string): void {
  text(`inbox.${method}: sender`, sender);
  text(`inbox.${method}: idempotencyKey`, key);
}

/** As a delivery: `stop()` waits for it. */
async function counted<T>({ arrived, answered }: Lifecycle, work: () => Promise<T>): Promise<T> {
  arrived();
  try {
    return await work();
  } finally {
    answered();
  }
}

/** `receiver.inbox`: an open store's, and redriving by the receiver's mode. */
export function createReceiverInbox(parts: Parts, lifecycle: Lifecycle): ReceiverInbox {
  const { store, startup, config, wakeSignal } = parts;

  /** @throws ConfigError where the store has none, or is not usable; Fault where it cannot be reached. */
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

  /** One of many, while the receiver runs: `stop()` waits for those that have begun, and no others begin. */
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
      const width = config.mode === 'inline' ? 1 : WIDTH;
      return actOnMany(inbox, filter, width, ({ sender, key }) => unlessStopping(() => redrive(sender, key)));
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
