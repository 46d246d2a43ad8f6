// Asks sellers to which webhook URLs they send, and compares the answers with the URLs that each seller was given
// (told.md §2.2). Used by `registrations.state({ check: true })` for one page of URLs.
import { isJsonObject, type JsonObject, present, textMember } from '../../codec/members.ts';
import { MAX_TEXT, printableText } from '../../codec/printable.ts';
import type { Hashes } from '../../crypto/engine.ts';
import { declaredIn } from '../../keys/declarations.ts';
import type { Alarm, RaiseAlarm } from '../../shared/alarms.ts';
import type { RegistrationRow } from '../../stores/store.ts';
import { DAY_MS } from '../../windows/calendar.ts';
import { hasReports } from '../../windows/stream.ts';
import type { OurUrl } from '../../windows/told.ts';
import type { JsonObject as Arguments } from '../answer-json.ts';
import { listedRows } from '../media-buy-rows.ts';
import { accountArgument, allRows } from '../operation-rows.ts';
import { buyStreamIn } from '../streams.ts';
import { type Entry, readAccount } from '../subscriptions/account-reading.ts';
import { differs } from '../subscriptions/entries.ts';
import { setIn, type Subscription, urlsOf } from '../subscriptions/set-row.ts';
import { accountIn } from '../subscriptions/set-states.ts';
import { askInPlace, failedQuestion, type QuestionContext, SELLER_BUSY } from './check-question.ts';
import { buyDifferences, type ToldBuy } from './compared-buys.ts';
import { leftAt } from './quiet.ts';
import { endOf, MOST_NAMED } from './recorded.ts';
import { isShownBelow, shownText, shownUrl } from './shown-url.ts';
import type { StatePage, UrlCheckError, UrlDrift, UrlState } from './state-types.ts';
import { givenAt, saveGiven } from './url-row.ts';

export interface CheckContext extends QuestionContext {
  readonly hashes: Hashes;
}

/** The number of sellers that are asked concurrently. */
const TOGETHER = 10;
/** The number of media buys in one request: the largest page size. */
const MOST_BUYS = 100;
/**
 * The number of `webhook_activity` records that are requested per media buy. The newest few show where a seller sends.
 */
const ACTIVITY = 10;
/** The most differences that are reported for one URL. */
const MOST_SHOWN = 10;

/** The media buys and subscriptions for which the seller shows another URL than the given one, and the URLs shown. */
interface Drift {
  readonly mediaBuys: Set<string>;
  readonly subscriptions: string[];
  readonly shown: Set<string>;
}

/** The results of checking one seller. `drifts` has the differences, by URL. */
interface Found {
  readonly drifts: Map<string, Drift>;
  readonly compared: { mediaBuys: number; subscriptions: number };
  readonly errors: UrlCheckError[];
}

/** The state of the check of one seller that has URLs on the checked page. */
interface Checking extends Found {
  readonly agentUrl: string;
  /** True if a URL is on the page that is checked. */
  readonly isListed: (url: OurUrl) => boolean;
  /** Sends the seller one request, as `askInPlace` does. */
  readonly ask: (operation: string, args: Arguments, ref: string | undefined) => Promise<JsonObject>;
  readonly now: number;
  readonly horizonMs: number | undefined;
}

const keyOf = ({ base, route }: OurUrl): string => JSON.stringify([base, route]);

/** Asks the sellers of a page of URLs, and returns the page with the differences that their answers show. */
export async function checkedPage(
  context: CheckContext,
  page: StatePage,
  signal: AbortSignal,
): Promise<StatePage> {
  const sellers = [...new Set(page.urls.map(({ agentUrl }) => agentUrl))];
  const found = new Map<string, Found>();
  for (let from = 0; from < sellers.length; from += TOGETHER) {
    const some = sellers.slice(from, from + TOGETHER);
    const checked = some.map(async (agentUrl) => {
      found.set(agentUrl, await checkedSeller(context, page, agentUrl, signal));
    });
    await Promise.all(checked);
  }
  const all = [...found.values()];
  const sum = (what: keyof Found['compared']): number =>
    all.reduce((count, { compared }) => count + compared[what], 0);
  return {
    ...page,
    urls: page.urls.map((url) => {
      const drift = found.get(url.agentUrl)?.drifts.get(keyOf(url));
      return drift ? { ...url, drift: driftOf(drift) } : url;
    }),
    check: {
      compared: { mediaBuys: sum('mediaBuys'), subscriptions: sum('subscriptions') },
      errors: all.flatMap(({ errors }) => errors),
    },
  };
}

const driftOf = ({ mediaBuys, subscriptions, shown }: Drift): UrlDrift => ({
  counts: { mediaBuys: mediaBuys.size, subscriptions: subscriptions.length },
  mediaBuys: [...mediaBuys].slice(0, MOST_NAMED),
  subscriptions: subscriptions.slice(0, MOST_NAMED),
  shown: [...shown],
});

async function checkedSeller(
  context: CheckContext,
  { urls, asOf }: StatePage,
  agentUrl: string,
  signal: AbortSignal,
): Promise<Found> {
  const { registrations, hashes } = context;
  const listed = new Set(urls.filter((url) => url.agentUrl === agentUrl).map(keyOf));
  const checking: Checking = {
    agentUrl,
    drifts: new Map(),
    compared: { mediaBuys: 0, subscriptions: 0 },
    errors: [],
    isListed: (url) => listed.has(keyOf(url)),
    ask: (operation, args, ref) => askInPlace(context, { agentUrl, ref }, [operation, args], signal),
    now: asOf,
    horizonMs: await registrations.run('', (rows) => declaredIn(rows, hashes, agentUrl)?.horizonMs),
  };
  await checkMediaBuys(context, checking, signal);
  const isBusy = checking.errors.some(({ code }) => code === SELLER_BUSY);
  if (!isBusy) await checkSubscriptions(context, checking, signal);
  return checking;
}

function noteDrift({ drifts }: Checking, url: OurUrl, shown: string): Drift {
  const known = drifts.get(keyOf(url)) ?? { mediaBuys: new Set(), subscriptions: [], shown: new Set() };
  drifts.set(keyOf(url), known);
  if (known.shown.size < MOST_SHOWN) known.shown.add(shown);
  return known;
}

/**
 * Media buys that are requested in the same calls. They have the same account and the same `ref`, by which the client
 * may choose an access token.
 */
interface Group {
  readonly account: string | undefined;
  readonly ref: string | undefined;
  readonly buys: Map<string, ToldBuy>;
}

async function checkMediaBuys(
  { registrations }: CheckContext,
  checking: Checking,
  signal: AbortSignal,
): Promise<void> {
  const groups = new Map<string, Group>();
  const { agentUrl: sender } = checking;
  for await (const row of allRows(registrations, { kind: 'stream', sender })) {
    const { account, ref, mediaBuyId } = buyStreamIn(row);
    const buy = listedBuy(checking, row);
    if (!buy) continue;
    const key = JSON.stringify([account ?? null, ref ?? null]);
    const group = groups.get(key) ?? { account, ref, buys: new Map<string, ToldBuy>() };
    groups.set(key, group);
    group.buys.set(mediaBuyId, buy);
  }
  for (const { buys, ...by } of groups.values()) {
    const all = [...buys];
    for (let from = 0; from < all.length; from += MOST_BUYS) {
      const some = new Map(all.slice(from, from + MOST_BUYS));
      const isAnswering = await unlessFailed(checking, 'mediaBuys', signal, () =>
        compareBuys(checking, { ...by, buys: some }),
      );
      if (!isAnswering) return;
    }
  }
}

/**
 * Returns the media buy stored in a row if a URL that the media buy uses now is on the checked page; otherwise
 * undefined.
 */
function listedBuy({ isListed, now, horizonMs }: Checking, row: RegistrationRow): ToldBuy | undefined {
  const stream = buyStreamIn(row);
  const { told = [] } = stream;
  const buy = { told, hasReports: hasReports(stream), endedAt: endOf(row, stream), horizonMs, now };
  const isOn = told.some(
    (one) => one.formerAt === undefined && isListed(one) && leftAt(one, told, buy, now) === undefined,
  );
  return isOn ? buy : undefined;
}

/**
 * Requests the media buys of a group, and compares each with the URLs that the seller was given. Reads further pages as
 * long as they contain requested media buys.
 */
async function compareBuys(checking: Checking, { account, ref, buys }: Group): Promise<void> {
  const left = new Map(buys);
  for (let cursor: string | undefined; left.size > 0;) {
    const data = await checking.ask(
      'get_media_buys',
      {
        ...accountArgument(account),
        media_buy_ids: [...buys.keys()],
        include_webhook_activity: true,
        webhook_activity_limit: ACTIVITY,
        pagination: { max_results: MOST_BUYS, ...(cursor !== undefined && { cursor }) },
      },
      ref,
    );
    const before = left.size;
    for (const row of listedRows(data)) compareBuy(checking, left, row);
    const next = cursorIn(data);
    if (next === undefined || next === cursor || left.size === before) return;
    cursor = next;
  }
}

function compareBuy(checking: Checking, left: Map<string, ToldBuy>, row: JsonObject): void {
  const mediaBuyId = textMember(row, 'media_buy_id');
  const buy = mediaBuyId === undefined ? undefined : left.get(mediaBuyId);
  if (mediaBuyId === undefined || !buy) return;
  left.delete(mediaBuyId);
  const differences = buyDifferences(buy, row);
  if (!differences) return;
  checking.compared.mediaBuys += 1;
  for (const { told, shown } of differences) {
    if (checking.isListed(told)) noteDrift(checking, told, shown).mediaBuys.add(mediaBuyId);
  }
}

function cursorIn(data: JsonObject): string | undefined {
  const pagination = present(data, 'pagination');
  if (!isJsonObject(pagination) || pagination['has_more'] !== true) return undefined;
  const cursor = textMember(pagination, 'cursor');
  return cursor === undefined || cursor === '' || cursor.length > MAX_TEXT ? undefined : cursor;
}

/** Checks the subscriptions of accounts. Those of a whole agent are left out, because sellers do not show them. */
async function checkSubscriptions(
  { registrations }: CheckContext,
  checking: Checking,
  signal: AbortSignal,
): Promise<void> {
  const { agentUrl: sender, isListed, ask } = checking;
  for await (const row of allRows(registrations, { kind: 'subscription', sender })) {
    const set = setIn(row);
    const account = accountIn(set);
    const on = set.subscriptions.flatMap((one) => {
      const url = one.state === 'active' ? urlsOf(one).find(isListed) : undefined;
      return url ? [{ one, url }] : [];
    });
    if (!account || on.length === 0) continue;
    const isAnswering = await unlessFailed(checking, 'subscriptions', signal, async () => {
      const ref = on[0]?.one.ref;
      const { entries } = await readAccount((operation, args) => ask(operation, args, ref), account);
      checking.compared.subscriptions += on.length;
      for (const { one, url } of on) {
        const difference = entryDifference(one, url, entries);
        if (difference !== undefined) noteDrift(checking, url, difference).subscriptions.push(one.ref);
      }
    });
    if (!isAnswering) return;
  }
}

/**
 * Returns the difference between the seller's entry of a subscription and the stored subscription; undefined if there
 * is none. URLs are compared only up to the base URL, because sellers may hide the rest.
 */
function entryDifference(one: Subscription, { base }: OurUrl, entries: readonly Entry[]): string | undefined {
  const [entry, second] = entries.filter(({ subscriber_id: id }) => id === one.subscriberId);
  if (second) return 'the seller has it more than once';
  const text = entry && textMember(entry, 'url');
  const shown = shownUrl(text);
  const isThere = shown !== undefined && isShownBelow(shown, base);
  const why = differs(entry, one, isThere ? text : undefined);
  return why !== undefined && shown && !isThere ? `${why}: ${shownText(shown, base)}` : why;
}

/**
 * Runs a request. If it fails, adds the failure to the errors of the check.
 * @returns false if no more requests of this kind should be sent to the seller.
 */
async function unlessFailed(
  { agentUrl, errors }: Checking,
  of: UrlCheckError['of'],
  signal: AbortSignal,
  question: () => Promise<void>,
): Promise<boolean> {
  try {
    await question();
    return true;
  } catch (error) {
    signal.throwIfAborted();
    const { code, message, isLast } = failedQuestion(error);
    if (!errors.some((known) => known.of === of && known.code === code)) {
      errors.push({ agentUrl, of, code, message });
    }
    return !isLast;
  }
}

/**
 * Raises the alarm `registration_drift` for each URL of the page with a difference. The store keeps the time of the
 * alarm, so there is at most one a day for each URL.
 */
export async function tellDrift(
  { registrations, hashes, raise }: Pick<CheckContext, 'registrations' | 'hashes'> & { raise: RaiseAlarm },
  { urls }: StatePage,
): Promise<void> {
  for (const { drift, ...url } of urls) {
    if (!drift) continue;
    const { agentUrl } = url;
    const isNews = await registrations.run(agentUrl, (rows, now) => {
      const given = givenAt(rows, url, hashes);
      if (!given || now - (given.driftAlarmAt ?? -Infinity) < DAY_MS) return false;
      saveGiven(rows, agentUrl, { ...given, driftAlarmAt: now }, hashes);
      return true;
    });
    if (isNews) raise(driftAlarm(url, drift));
  }
}

/** The most media buys or subscriptions that the message of the alarm `registration_drift` names. */
const NAMED = 5;

function driftAlarm(
  { agentUrl: sender, base, route }: Pick<UrlState, 'agentUrl' | 'base' | 'route'>,
  { counts, mediaBuys, subscriptions, shown }: UrlDrift,
): Alarm {
  const who = [
    named('media buys', counts.mediaBuys, mediaBuys),
    named('subscriptions', counts.subscriptions, subscriptions),
  ].filter((text) => text !== '');
  return {
    code: 'registration_drift',
    sender,
    base,
    route,
    counts,
    shown,
    message: `The seller does not have the URL below ${base} that it was told: ${who.join(' and ')}; it shows ${shown.join('; ')}. Ask it, or tell it again: registrations.create with update_media_buy, subscribe.`,
  };
}

function named(what: string, count: number, names: readonly string[]): string {
  if (count === 0) return '';
  const first = names.slice(0, NAMED).map((name) => printableText(name, MAX_NAME));
  return `${count} ${what} (${first.join(', ')}${count > NAMED ? ', …' : ''})`;
}

const MAX_NAME = 64;
