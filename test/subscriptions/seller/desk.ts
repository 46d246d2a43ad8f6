import { randomUUID } from 'node:crypto';
import type { SellerKey } from '../../reliability/market/seller/keys.ts';
import { type Book, type Held, provenBy } from './book.ts';
import { type Channel, type Entry, entryIn, type Fault, faultsOf, OFFERED, shown } from './entries.ts';
import { keysSeen } from './keys-seen.ts';
import { type Args, type Line, Refused, type Reply } from './log.ts';
import { deliveryAuthOf, postSigned } from './post.ts';

/* What the seller does for a call, where nothing goes wrong with it. */

export interface DeskOptions {
  readonly book: Book;
  readonly write: (line: Line) => void;
  readonly key: SellerKey;
  readonly agentUrl: () => string;
  /** Accounts of one page of `list_accounts`. */
  readonly pageSize: number;
  /** It declares nothing, as sellers of 3.1 may. */
  readonly isSilent: boolean;
}

export interface Desk {
  /** @param principal who calls; undefined: nobody knows. */
  readonly ask: (operation: string, args: Args, principal: string | undefined) => Promise<Reply>;
  /** Forgets the keys of all requests. */
  readonly forget: () => void;
}

export const OPERATIONS = [
  'get_adcp_capabilities',
  'list_accounts',
  'sync_accounts',
  'sync_agent_notification_configs',
] as const;

const MOST_ACCOUNTS = 1000;
/** Members beside `account` that belong to another form of the request. */
const OF_PROVISIONING = ['brand', 'operator', 'billing', 'operator_unit', 'currency', 'timezone'];

/** What comes of a new set. */
type Taken =
  | { readonly action: 'updated' | 'unchanged'; readonly held: readonly Held[] }
  | { readonly action: 'failed'; readonly errors: readonly Fault[] };

interface Change {
  readonly set: string;
  readonly channel: Channel;
  readonly given: unknown;
  /** Of the set, in the request. */
  readonly field: string;
  readonly isDry: boolean;
  readonly accountId?: string;
}

const result = (value: Record<string, unknown>): Reply => ({ kind: 'result', value });

export function deskOf({ book, write, key, agentUrl, pageSize, isSilent }: DeskOptions): Desk {
  const keys = keysSeen();

  /** One POST, and at most one more. */
  async function proves({ set, accountId }: Change, entry: Entry): Promise<boolean> {
    const { subscriber_id: subscriberId, url, event_types: types } = entry;
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      const challenge = `chl_${randomUUID()}`;
      const body = {
        type: 'webhook.challenge',
        challenge,
        ...(accountId === undefined ? { scope: 'agent' } : { account_id: accountId }),
        subscriber_id: subscriberId,
        seller_agent_url: agentUrl(),
        delivery_auth: deliveryAuthOf(entry),
        event_types: types,
      };
      const { status, text } = await postSigned(url, body, key);
      const isProven =
        status !== undefined &&
        status >= 200 &&
        status < 300 &&
        [JSON.stringify({ challenge }), JSON.stringify({ token: challenge })].includes(text);
      write({
        what: 'proof',
        set,
        subscriberId,
        attempt,
        isProven,
        ...(status !== undefined && { status }),
      });
      if (isProven) return true;
    }
    return false;
  }

  async function taken(change: Change): Promise<Taken> {
    const { set, channel, given, field, isDry } = change;
    const faults = faultsOf(given, channel, field);
    if (faults.length > 0) return { action: 'failed', errors: faults };
    const entries = (given as readonly Args[]).map(entryIn);
    const former = new Map(book.entries(set).map((held) => [held.entry.subscriber_id, held]));
    const held = entries.map((entry): Held => ({ entry, proven: provenBy(entry) }));
    const before = JSON.stringify(book.entries(set));
    if (JSON.stringify(held) === before) return { action: 'unchanged', held };
    if (isDry) return { action: 'updated', held };
    const unproven = held.flatMap(({ entry, proven }, at) => {
      const known = former.get(entry.subscriber_id);
      const isProven = known?.proven === proven && known.entry.active;
      return entry.active && !isProven ? [{ entry, at }] : [];
    });
    const failed = await Promise.all(
      unproven.map(async ({ entry, at }): Promise<readonly Fault[]> => {
        if (await proves(change, entry)) return [];
        const message = 'the subscriber has not proven control';
        return [{ code: 'VALIDATION_ERROR', message, field: `${field}[${at}].url` }];
      }),
    );
    const errors = failed.flat();
    if (errors.length > 0) return { action: 'failed', errors };
    book.put(set, held);
    return { action: 'updated', held };
  }

  async function syncAccount(given: unknown, at: number, isDry: boolean): Promise<object> {
    const { account: named, notification_configs: configs } = (given ?? {}) as Args;
    const foreign = OF_PROVISIONING.filter((member) => member in ((given ?? {}) as Args));
    try {
      if (foreign.length > 0) {
        throw new Refused('INVALID_REQUEST', `not beside account: ${foreign.join(', ')}`, {
          field: `accounts[${at}].${foreign[0]}`,
        });
      }
      const account = book.named(named);
      const { account_id: set, brand, operator, status } = account;
      const common = { account_id: set, brand, operator, status };
      if (configs === undefined) return { ...common, action: 'unchanged' };
      const done = await taken({
        set,
        channel: 'account',
        given: configs,
        field: `accounts[${at}].notification_configs`,
        isDry,
        accountId: set,
      });
      if (done.action === 'failed') return { ...common, action: 'failed', errors: done.errors };
      return {
        ...common,
        action: done.action,
        notification_configs: done.held.map(({ entry }) => shown(entry)),
      };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return { ...(named as object), action: 'failed', status: 'rejected', errors: [error.error] };
    }
  }

  async function syncAccounts(args: Args): Promise<Reply> {
    const { accounts, dry_run: isDry = false } = args;
    if (!Array.isArray(accounts) || accounts.length === 0 || accounts.length > MOST_ACCOUNTS) {
      throw new Refused('VALIDATION_ERROR', 'accounts is no list of accounts', { field: 'accounts' });
    }
    const done: object[] = [];
    for (const [at, account] of accounts.entries()) done.push(await syncAccount(account, at, isDry === true));
    return result({ ...(isDry === true && { dry_run: true }), accounts: done });
  }

  async function syncAgent(args: Args, principal: string | undefined): Promise<Reply> {
    if (principal === undefined) throw new Refused('AUTH_MISSING', 'nobody knows who asks');
    const { notification_configs: given, dry_run: isDry = false } = args;
    const set = `agent ${principal}`;
    const isCleared = Array.isArray(given) && given.length === 0 && book.entries(set).length > 0;
    const done = await taken({
      set,
      channel: 'agent',
      given,
      field: 'notification_configs',
      isDry: isDry === true,
    });
    const said = { ...(isDry === true && { dry_run: true }) };
    if (done.action === 'failed') return result({ ...said, action: 'failed', errors: done.errors });
    const configs = done.held.map(({ entry }) => shown(entry));
    return result({
      ...said,
      action: isCleared && done.action === 'updated' ? 'cleared' : done.action,
      notification_configs: configs,
    });
  }

  function listAccounts({ account, pagination }: Args): Reply {
    const { cursor, max_results: most } = (pagination ?? {}) as {
      readonly cursor?: string;
      readonly max_results?: number;
    };
    const all = book.matching(account);
    const from = cursor === undefined ? 0 : Number(cursor.replace('at-', ''));
    const to = from + Math.min(pageSize, most ?? pageSize);
    const accounts = all.slice(from, to).map((one) => {
      const entries = book.entries(one.account_id);
      return {
        ...one,
        ...(entries.length > 0 && { notification_configs: entries.map(({ entry }) => shown(entry)) }),
      };
    });
    const hasMore = to < all.length;
    return result({
      accounts,
      ...(all.length > 1 && { pagination: { has_more: hasMore, ...(hasMore && { cursor: `at-${to}` }) } }),
    });
  }

  const capabilities = (): Reply =>
    result({
      adcp: {
        major_versions: [3],
        supported_versions: ['3.2'],
        idempotency: { supported: true, replay_ttl_seconds: 86_400 },
        ...(!isSilent && {
          capability_changes: {
            capabilities_version: 'v1',
            cache_ttl_seconds: 3_600,
            notifications: {
              supported: true,
              registration_task: 'sync_agent_notification_configs',
              event_types: OFFERED.agent,
            },
          },
        }),
      },
      adcp_version: '3.2',
      supported_protocols: ['media_buy'],
      webhook_signing: { supported: true, delivery_retry_horizon_seconds: 86_400 },
      ...(!isSilent && {
        account: {
          notifications: {
            supported: true,
            registration_task: 'sync_accounts',
            read_task: 'list_accounts',
            event_types: OFFERED.account,
          },
        },
      }),
    });

  const answer = async (operation: string, args: Args, principal: string | undefined): Promise<Reply> => {
    switch (operation) {
      case 'get_adcp_capabilities':
        return capabilities();
      case 'list_accounts':
        return listAccounts(args);
      case 'sync_accounts':
        return keys.once(args, () => syncAccounts(args));
      case 'sync_agent_notification_configs':
        return keys.once(args, () => syncAgent(args, principal));
      default:
        throw new Refused('UNSUPPORTED_FEATURE', `there is no operation ${operation}`);
    }
  };

  return {
    forget: keys.forget,
    ask: async (operation, args, principal) => {
      try {
        return await answer(operation, args, principal);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        return { kind: 'error', error: error.error };
      }
    },
  };
}
