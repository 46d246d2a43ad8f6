// Asks a seller for running media buys and tasks that the store does not know (owed.md §10). It only lists them, and
// registers none. `reconciler.discover` loads this file when it is first called.
import { onlyKnown } from '../config/validate.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { Transport } from '../events/event.ts';
import { failureOf } from '../poll/failure.ts';
import type { Adoption } from '../registrations/adopt.ts';
import { SellerError } from '../registrations/answer.ts';
import { accountJson, checkedRef, type JsonObject } from '../registrations/answer-json.ts';
import { accountArgument } from '../registrations/operation-rows.ts';
import { requireSignal, SELLER } from '../registrations/option-checks.ts';
import { checked, requireSeller, sellerIn } from '../registrations/seller.ts';
import { isMediaBuyKnown, isTaskKnown } from '../registrations/known.ts';
import { freePlace, placeFor } from '../registrations/places.ts';
import { isOfKind, messageOf } from '../shared/errors.ts';
import { limited, orAborted } from '../shared/time-limits.ts';
import type { RegistrationRows } from '../stores/store.ts';
import type { ReconcilerContext } from './context.ts';
import type {
  DiscoveredMediaBuy,
  DiscoveredTask,
  DiscoverQuery,
  Discovery,
  DiscoveryError,
} from './discover-types.ts';
import { mediaBuysIn, tasksIn } from './discovered.ts';
import { askSeller, pauseOf } from './question.ts';
import {
  type Behind,
  type ListRead,
  NO_LIST,
  placesIn,
  readList,
  type SellerList,
  textOf,
} from './seller-lists.ts';

/** The context of a reconciler, with the parts that only `discover` needs. */
export interface DiscoverContext extends ReconcilerContext {
  readonly hashes: Hashes;
  /** The host and port of the URLs at which your webhooks arrive (`publicUrl` of the registrations). */
  readonly host: string;
  readonly transport: (agentUrl: string) => Transport;
}

const QUERY: Readonly<Record<keyof DiscoverQuery, true>> = {
  ...SELLER,
  account: true,
  ref: true,
  after: true,
  signal: true,
};

/**
 * `BUYS`: the statuses of media buys that are not terminal. `TASKS`: the statuses of tasks that have not ended. Only
 * these are requested.
 */
const BUYS = ['pending_creatives', 'pending_start', 'active', 'paused'];
const TASKS = ['submitted', 'working', 'input-required'];
/**
 * The number of sent webhooks that are requested for each media buy. The newest few show to which URL the seller sends.
 */
const ACTIVITY = 10;
/** The names under which sellers offer the operation that lists their tasks. The first name is the protocol's own. */
const TASK_LISTS = ['list_tasks', 'tasks/list', 'tasks_list'] as const;

/** The checked query of one call of `discover`, which all its requests to the seller use. */
interface Asking {
  readonly sender: string;
  readonly ref: string | undefined;
  readonly account: { readonly account?: JsonObject };
  readonly adoption: Adoption;
  readonly signal: AbortSignal;
}

/**
 * Lists a seller's running media buys and tasks that the store does not know.
 * @throws RegistrationError (rejects) for an invalid query. If no request was answered, rejects with the seller's
 * error.
 */
export async function discovered(context: DiscoverContext, query: DiscoverQuery): Promise<Discovery> {
  const asking = requireDiscover(query);
  const from = placesIn(query.after);
  const buys = from.mediaBuys ? await readList(buysOf(context, asking), from.mediaBuys) : ENDED;
  const tasks = from.tasks ? await tasksRead(context, asking, from.tasks) : ENDED;
  asking.signal.throwIfAborted();
  requireSome([buys, tasks]);
  const next = textOf({ mediaBuys: buys.next, tasks: tasks.next });
  return {
    mediaBuys: buys.found,
    ...(!isUnlisted(tasks) && { tasks: tasks.found }),
    errors: [...buys.errors, ...tasks.errors],
    ...(next !== undefined && { next }),
  };
}

/** The result for a list that an earlier call of `discover` has read to its end. */
const ENDED: ListRead<never> = { found: [], errors: [], pages: 0 };

/** Requires that at least one page of one list was read. @throws the first error otherwise. */
function requireSome(lists: readonly ListRead<unknown>[]): void {
  const [failed] = lists.filter(({ thrown }) => thrown !== undefined);
  if (failed && lists.every(({ pages }) => pages === 0)) throw failed.thrown;
}

const isUnlisted = ({ pages, errors }: ListRead<unknown>): boolean =>
  pages === 0 && errors.some(({ code }) => code === NO_LIST);

/** Checks the query of `discover`. @throws RegistrationError for an invalid query. */
function requireDiscover(query: DiscoverQuery): Asking {
  checked(() => onlyKnown('discover', query, QUERY));
  requireSeller(query, 'signature', true);
  const { agentUrl, signal = new AbortController().signal } = query;
  checked(() => requireSignal(signal));
  const text = query.account === undefined ? undefined : accountJson(query.account);
  const account = accountArgument(text);
  const ref = query.ref === undefined ? undefined : checkedRef(query.ref);
  const adoption = { ...sellerIn(query), ...account, ...(ref !== undefined && { ref }) };
  return { sender: agentUrl, ref, account, adoption, signal };
}

function buysOf(context: DiscoverContext, asking: Asking): SellerList<DiscoveredMediaBuy> {
  const { account, adoption } = asking;
  const question = leniently(
    (args) => ask(context, asking, 'get_media_buys', { ...account, status_filter: BUYS, ...args }),
    { include_webhook_activity: true, webhook_activity_limit: ACTIVITY },
  );
  return {
    of: 'mediaBuys',
    name: 'media_buys',
    ask: question.ask,
    read: (data) => mediaBuysIn(data, context.host, adoption),
    idOf: ({ mediaBuyId }) => mediaBuyId,
    unknown: unknownBy(context, asking, ({ mediaBuyId }, rows) =>
      isMediaBuyKnown(rows, context.hashes, mediaBuyId),
    ),
  };
}

async function tasksRead(
  context: DiscoverContext,
  asking: Asking,
  from: Behind,
): Promise<ListRead<DiscoveredTask>> {
  const { account, adoption } = asking;
  const names = await namesOf(context, asking);
  if (names.length === 0) return { ...ENDED, errors: [NO_TASKS] };
  const question = leniently(
    inTurn(names, (name, args) => ask(context, asking, name, { filters: { statuses: TASKS }, ...args })),
    account,
  );
  const { account: _its, ...plain } = adoption;
  const isPlain = (): boolean => question.isRefused();
  const read = await readList(
    {
      of: 'tasks',
      name: 'tasks',
      ask: question.ask,
      read: (data) => tasksIn(data, isPlain() ? plain : adoption),
      idOf: ({ taskId }) => taskId,
      unknown: unknownBy(context, asking, ({ taskId }, rows) => isTaskKnown(rows, context.hashes, taskId)),
    },
    from,
  );
  return isPlain() ? { ...read, errors: [...read.errors, OF_ANY_ACCOUNT] } : read;
}

const NO_TASKS: DiscoveryError = {
  of: 'tasks',
  code: NO_LIST,
  message: `The seller lists none of ${TASK_LISTS.join(', ')}, by which its tasks are asked for.`,
};

const OF_ANY_ACCOUNT: DiscoveryError = {
  of: 'tasks',
  code: 'account_refused',
  message: 'The seller lists tasks without account alone: they may be of another account of yours.',
};

/**
 * Returns the operation name with which to list the seller's tasks, if the seller offers one. If the seller's
 * operations are unknown, returns all names to try in turn (none on the agent transport).
 */
async function namesOf(
  { call, callMs, sessions, transport }: DiscoverContext,
  { sender, ref, signal }: Asking,
) {
  let listed: readonly string[] | undefined;
  try {
    const limit = { ms: callMs, reason: `the seller did not list its operations within ${callMs} ms` };
    listed = await limited(limit, signal, (within) =>
      orAborted(
        Promise.resolve(
          call.operations?.(sender, { signal: within, sessions, ...(ref !== undefined && { ref }) }),
        ),
        within,
      ),
    );
  } catch {
    // If the seller does not list its operations, each name is tried in turn.
  }
  if (listed) return TASK_LISTS.filter((name) => listed.includes(name)).slice(0, 1);
  return transport(sender) === 'agent' ? [] : TASK_LISTS;
}

type AskWith = (args: JsonObject) => Promise<unknown>;

/**
 * Returns a function that sends requests under the first of the names that the seller knows. It tries the names from
 * first to last, and keeps the one that the seller knows.
 */
function inTurn(names: readonly string[], by: (name: string, args: JsonObject) => Promise<unknown>): AskWith {
  let at = 0;
  return async (args) => {
    for (; ; at += 1) {
      try {
        return await by(names[at] ?? '', args);
      } catch (error) {
        if (at + 1 >= names.length || failureOf(error).kind !== 'no-operation') throw error;
      }
    }
  };
}

/**
 * Returns `ask`, which sends requests with arguments (`more`) that not every edition of the protocol has. If the seller
 * refuses `more`, `ask` repeats the request without it, and omits it from later requests. `isRefused()` is then true.
 */
function leniently(by: AskWith, more: JsonObject) {
  const hasMore = Object.keys(more).length > 0;
  let isRefused = false;
  return {
    isRefused: () => isRefused,
    ask: async (pagination: JsonObject): Promise<unknown> => {
      try {
        return await by({ ...(!isRefused && more), pagination });
      } catch (error) {
        if (isRefused || !hasMore || !isAboutArguments(error)) throw error;
        const data = await by({ pagination });
        isRefused = true;
        return data;
      }
    },
  };
}

const ARGUMENT_CODES: ReadonlySet<string> = new Set([
  'INVALID_REQUEST',
  'VALIDATION_ERROR',
  'UNSUPPORTED_FEATURE',
  'FIELD_NOT_PERMITTED',
]);

/**
 * Matches error texts with which servers and their SDKs refuse an argument, if they send no error code of the protocol.
 */
const ARGUMENT_TEXT =
  /-32602|\b(?:argument|parameter|param|propert(?:y|ies)|field|input|keyword|schema|validation)s?\b/i;

function isAboutArguments(error: unknown): boolean {
  if (isOfKind(error, SellerError)) return ARGUMENT_CODES.has(error.code);
  return failureOf(error).kind === 'failed' && ARGUMENT_TEXT.test(messageOf(error));
}

/** Sends one request while it occupies one of the seller's call slots, which limit concurrent calls (owed.md §4.4). */
async function ask(
  context: DiscoverContext,
  { sender, ref, signal }: Asking,
  operation: string,
  args: JsonObject,
): Promise<unknown> {
  const place = await placeFor(context, { sender, who: 'discover' }, signal);
  const of = ref === undefined ? {} : { ref };
  const answered = await askSeller(context, { sender }, of, [operation, args], signal);
  const failure = 'failure' in answered ? answered.failure : undefined;
  const pauseMs = failure && !signal.aborted ? pauseOf(failure) : undefined;
  await context.rows.run(sender, (rows, now) => freePlace(rows, now, place, pauseMs));
  signal.throwIfAborted();
  if ('failure' in answered) throw answered.cause;
  return answered.data;
}

/** The most media buys or tasks that are looked up in one transaction of the store. */
const MOST_IN_STEP = 500;

function unknownBy<T>(
  { rows: store }: DiscoverContext,
  { sender }: Asking,
  isKnown: (one: T, rows: RegistrationRows) => boolean,
): (found: readonly T[]) => Promise<readonly T[]> {
  return async (found) => {
    const unknown: T[] = [];
    for (let from = 0; from < found.length; from += MOST_IN_STEP) {
      const some = found.slice(from, from + MOST_IN_STEP);
      const known = await store.run(sender, (rows) => some.map((one) => isKnown(one, rows)));
      unknown.push(...some.filter((_one, at) => !known[at]));
    }
    return unknown;
  };
}
