import { oneOf, onlyKnown, text, wholeNumber } from '../config/validate.ts';
import { ConfigError, Fault } from '../errors.ts';
import type { Lifecycle } from '../lifecycle.ts';
import type { Equipped, Parts } from '../parts.ts';
import type { InboxQuery, StoreInbox } from '../stores/contract.ts';
import type { InboxListQuery, ReceiverInbox } from './contract.ts';
import { actOnMany, checkedFilter, checkedStats, statsOf, WIDTH } from './many.ts';
import { redriveInline } from './redrive.ts';
import { seenEvent } from './seen-event.ts';

const LIST_DEFAULT = 100;
const LIST_MOST = 1_000;
const QUERY_NAMES = { state: true, sender: true, limit: true, after: true } as const;
const STATES = ['queued', 'leased', 'dead'] as const;

/** Callers in JavaScript too: a mistake must not look like an empty inbox. @throws ConfigError */
function checkedQuery(query: InboxListQuery | undefined): InboxQuery {
  const { limit, state, sender, after }: Partial<InboxListQuery> = query ?? {};
  // `next` for `after` would give the first page for ever.
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
  const { store, startup, config, bell } = parts;

  /** @throws ConfigError where the store has none, or is not usable; Fault where it cannot be reached. */
  async function opened(): Promise<{ readonly inbox: StoreInbox; readonly equipped: Equipped }> {
    if (!store.inbox) {
      throw new ConfigError(
        `receiver.inbox: the ${store.name} store has no inbox. Use one that has: SQLite, Postgres, MySQL, Redis.`,
      );
    }
    if (lifecycle.stopping()) throw new Fault('shutting_down', 'the receiver stops');
    return { equipped: await startup.passed(), inbox: store.inbox };
  }

  async function redrive(sender: string, key: string): ReturnType<ReceiverInbox['redrive']> {
    checkKey('redrive', sender, key);
    const { inbox, equipped } = await opened();
    if (config.mode === 'inline') {
      return redriveInline({ sender, key }, inbox, equipped, lifecycle.background);
    }
    const result = await inbox.redrive(sender, key);
    if (result === 'queued') bell.ring();
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
      const { inbox, equipped } = await opened();
      const page = await inbox.list(checked);
      return { ...page, records: page.records.map((record) => seenEvent(record, equipped)) };
    },
    inspect: async (sender, key) => {
      checkKey('inspect', sender, key);
      const { inbox, equipped } = await opened();
      const record = await inbox.inspect(sender, key);
      return record && seenEvent(record, equipped);
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
