import { flag, oneOf, onlyKnown, text, wholeNumber } from '../config/validate.ts';
import { ConfigError } from '../errors.ts';
import type { InboxQuery, InboxRecord, StoreInbox } from '../stores/contract.ts';
import type { DiscardManyQuery, InboxStats, ManyResult, RedriveManyQuery, SenderStats } from './contract.ts';

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
