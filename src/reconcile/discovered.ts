// Reads the media buys or tasks on one page of a seller's list (owed.md §10.2, §10.3). The functions are pure, and the
// page is untrusted input. `reconciler.discover` uses them for each page.
import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import { MAX_TEXT, MAX_URL_BYTES } from '../codec/printable.ts';
import { isTerminal, taskStatus } from '../events/status.ts';
import type { Adoption } from '../registrations/adopt.ts';
import { instantIn } from '../registrations/asked-reports.ts';
import { isTaskType } from '../registrations/answer-json.ts';
import type { DiscoveredMediaBuy, DiscoveredTask } from './discover-types.ts';
import { isTerminalBuy } from '../windows/ends.ts';

/** The most entries of a page that are read. */
const MOST_ROWS = 10_000;
/** The number of characters to which a longer status is cut. */
const MAX_STATUS = 128;
/** The most sent webhooks (`webhook_activity`) of a media buy that are read. */
const MOST_ACTIVITY = 200;

/** The result of reading the entries on one page of a list. */
export interface Entries<T> {
  readonly found: readonly T[];
  /** The number of entries that cannot be adopted, because they lack a valid id or task type. */
  readonly unfit: number;
  /** The number of entries beyond `MOST_ROWS`, which were not read. */
  readonly left: number;
}

/**
 * The result of reading one entry of a page. `unfit`: the entry cannot be adopted. Undefined: the media buy or task has
 * ended, so the entry is left out.
 */
type Read<T> = T | 'unfit' | undefined;

/**
 * Returns the list with this name on a page. Without one, returns the page's only other list (beside `errors`), because
 * sellers use different names. Undefined if there is no other list, or more than one.
 */
function listIn(data: unknown, name: string): readonly unknown[] | undefined {
  if (!isJsonObject(data)) return undefined;
  const own = present(data, name);
  if (Array.isArray(own)) return own;
  const lists = Object.entries(data).filter(([of, value]) => of !== 'errors' && Array.isArray(value));
  return lists.length === 1 ? (lists[0]?.[1] as readonly unknown[]) : undefined;
}

function entriesIn<T>(
  data: unknown,
  name: string,
  read: (row: JsonObject) => Read<T>,
): Entries<T> | undefined {
  const list = listIn(data, name);
  if (!list) return undefined;
  const rows = list.slice(0, MOST_ROWS).map((row): Read<T> => (isJsonObject(row) ? read(row) : 'unfit'));
  return {
    found: rows.filter((row) => row !== undefined && row !== 'unfit') as T[],
    unfit: rows.filter((row) => row === 'unfit').length,
    left: list.length - rows.length,
  };
}

const idIn = (row: JsonObject, name: string): string | undefined => {
  const id = textMember(row, name);
  return id !== undefined && id !== '' && id.length <= MAX_TEXT ? id : undefined;
};

const statusIn = (row: JsonObject): string => (textMember(row, 'status') ?? '').slice(0, MAX_STATUS);

const isoIn = (row: JsonObject, name: string): string | undefined => {
  const instant = instantIn(row, name);
  return instant === undefined ? undefined : new Date(instant).toISOString();
};

/**
 * Returns the media buys on a page that are not terminal. Undefined if the page has no list of media buys.
 * @param host the host of the URLs at which your webhooks arrive.
 * @param adoption the members that the `adoption` of every entry has. The entry's `mediaBuyId` is added.
 */
export function mediaBuysIn(
  data: unknown,
  host: string,
  adoption: Adoption,
): Entries<DiscoveredMediaBuy> | undefined {
  return entriesIn(data, 'media_buys', (row): Read<DiscoveredMediaBuy> => {
    const mediaBuyId = idIn(row, 'media_buy_id');
    if (mediaBuyId === undefined) return 'unfit';
    const status = statusIn(row);
    if (isTerminalBuy(status)) return undefined;
    const [start, end] = [isoIn(row, 'start_time'), isoIn(row, 'end_time')];
    const usesOurUrl = hasHost(row, host);
    return {
      mediaBuyId,
      status,
      ...(start !== undefined && { start }),
      ...(end !== undefined && { end }),
      ...(usesOurUrl !== undefined && { usesOurUrl }),
      adoption: { ...adoption, mediaBuyId },
    };
  });
}

/** True if the row's `webhook_activity` shows that a webhook was sent to this host. Undefined if it shows no URL. */
function hasHost(row: JsonObject, host: string): boolean | undefined {
  const activity = present(row, 'webhook_activity');
  const hosts = (Array.isArray(activity) ? activity.slice(0, MOST_ACTIVITY) : []).flatMap(
    (one) => (isJsonObject(one) ? hostOf(present(one, 'url')) : undefined) ?? [],
  );
  return hosts.length === 0 ? undefined : hosts.includes(host);
}

/** Returns the host and port of a URL. Undefined if the value is no http or https URL. */
function hostOf(url: unknown): string | undefined {
  if (typeof url !== 'string' || url.length > MAX_URL_BYTES || !URL.canParse(url)) return undefined;
  const { protocol, host } = new URL(url);
  return protocol === 'https:' || protocol === 'http:' ? host : undefined;
}

/** Returns the tasks on a page that have not ended. Undefined if the page has no list of tasks. */
export function tasksIn(data: unknown, adoption: Adoption): Entries<DiscoveredTask> | undefined {
  return entriesIn(data, 'tasks', (row): Read<DiscoveredTask> => {
    const [taskId, taskType] = [idIn(row, 'task_id'), textMember(row, 'task_type')];
    if (taskId === undefined || !isTaskType(taskType)) return 'unfit';
    const status = statusIn(row);
    const known = taskStatus(status);
    if (known && isTerminal(known)) return undefined;
    const createdAt = isoIn(row, 'created_at');
    return {
      taskId,
      taskType,
      status,
      ...(createdAt !== undefined && { createdAt }),
      adoption: { ...adoption, taskId, taskType },
    };
  });
}
