// Reads a media buy in an answer of `get_media_buys`, and derives its terms: the frequency and the periods of its
// reports (owed.md §1.2, §1.3). Used by ask-seller.ts and snapshots.ts.
import { isJsonObject, type JsonObject, present, textMember } from '../codec/members.ts';
import {
  activePackages,
  flightIn,
  instantIn,
  packagesIn,
  productsIn,
  spansOf,
} from '../registrations/asked-reports.ts';
import { listedRows } from '../registrations/media-buy-rows.ts';
import type { BuyStream } from '../registrations/streams.ts';
import { type Period, windowPeriod } from '../windows/calendar.ts';
import { isTerminalBuy } from '../windows/ends.ts';
import { type Terms, withTerms } from '../windows/terms.ts';
import { clockIn, frequenciesIn, hadIn, hasReports, placedAnew } from '../windows/stream.ts';

/** The facts about a media buy, as its seller describes it in an answer. */
export interface MediaBuyFacts {
  readonly status: string;
  /** A text that changes whenever the media buy changes; undefined if the seller gives none. */
  readonly revision?: string;
  /** The seller's `revision` if it is a number, because such a number grows with each change. */
  readonly changes?: number;
  /** The time of the media buy's last change, Unix ms, as the seller states it. */
  readonly updatedAt?: number;
  /** The time of the media buy's cancellation, Unix ms, as the seller states it. */
  readonly canceledAt?: number;
  /** The time as of which the answer is true, Unix ms, as the seller states it (`status_as_of`). */
  readonly asOf?: number;
  readonly flight: Parameters<typeof spansOf>[0];
  readonly products: readonly string[];
}

/** Returns the rows of the requested media buys in an answer, by id. Rows without a status are left out. */
export function mediaBuyRows(data: unknown, ids: ReadonlySet<string>): ReadonlyMap<string, JsonObject> {
  const found = new Map<string, JsonObject>();
  for (const row of listedRows(data)) {
    const id = textMember(row, 'media_buy_id');
    const isAsked = id !== undefined && ids.has(id) && textMember(row, 'status') !== undefined;
    if (isAsked && !found.has(id)) found.set(id, row);
  }
  return found;
}

/** Reads the facts about a media buy from its row in an answer. @param row a row with a status. */
export function factsIn(row: JsonObject): MediaBuyFacts {
  const { status, revision: says } = standingIn(row);
  const cancellation = present(row, 'cancellation');
  const [updated, asOf] = [instantIn(row, 'updated_at'), instantIn(row, 'status_as_of')];
  const canceled = isJsonObject(cancellation) ? instantIn(cancellation, 'canceled_at') : undefined;
  const packages = packagesIn(row);
  const changes = present(row, 'revision');
  return {
    status,
    ...(says !== undefined && { revision: says }),
    ...(typeof changes === 'number' && Number.isFinite(changes) && { changes }),
    ...(updated !== undefined && { updatedAt: updated }),
    ...(canceled !== undefined && { canceledAt: canceled }),
    ...(asOf !== undefined && { asOf }),
    flight: { ...flightIn(row), ...(packages.length > 0 && { packages: activePackages(packages) }) },
    products: productsIn(packages),
  };
}

const MAX_REVISION = 128;

/** Returns the status and the revision in a row. If they differ from the stored ones, the media buy has changed. */
export function standingIn(row: JsonObject): Pick<MediaBuyFacts, 'status' | 'revision'> {
  const revision = present(row, 'revision');
  const said = [textMember(row, 'updated_at'), revision === undefined ? undefined : JSON.stringify(revision)];
  const says = said.filter((one) => one !== undefined).join(' ');
  const status = (textMember(row, 'status') ?? '').slice(0, MAX_REVISION);
  return { status, ...(says && { revision: says.slice(0, MAX_REVISION) }) };
}

/**
 * `MOST_PRODUCTS`: the most product ids that are kept for a media buy. `MAX_PRODUCT_ID`: the most characters of one.
 * The ids are only passed to the option `schedule`.
 */
const MOST_PRODUCTS = 100;
const MAX_PRODUCT_ID = 255;

const isAnother = ({ askedAt, revision }: BuyStream, facts: MediaBuyFacts): boolean =>
  askedAt === undefined || facts.revision === undefined || facts.revision !== revision;

/**
 * True if an answer is older than the last accepted answer, by the revision and times that both of them have. This
 * happens because servers of one seller may lag behind each other (owed.md §1.3).
 */
export function isOlder(stream: BuyStream, facts: MediaBuyFacts): boolean {
  if (!isAnother(stream, facts)) return false;
  const { changes, updatedAt, asOf } = facts;
  const behind = [
    [changes, stream.changes],
    [updatedAt, stream.updatedAt],
    [asOf, stream.saidAt],
  ].flatMap(([is, was]) => (is === undefined || was === undefined ? [] : is - was));
  return behind.some((by) => by < 0) && behind.every((by) => by <= 0);
}

/**
 * Returns the media buy's record with the facts of an answer. If the media buy has changed, its terms (frequency and
 * periods of reports) are updated too.
 * @param askedAt the time that is stored as the time of the request, on the store's clock.
 */
export function withFacts(before: BuyStream, facts: MediaBuyFacts, askedAt: number): BuyStream {
  const { endedAt = changedAt(facts, before, askedAt), ...stream } = withoutWord(before);
  const isFirst = stream.askedAt === undefined;
  const isChanged = isAnother(stream, facts);
  const fitting = facts.products.filter(({ length }) => length <= MAX_PRODUCT_ID);
  const { unverifiable: _known, saidAt: _said, changes: _changes, updatedAt: _updated, ...known } = stream;
  const { asOf, changes, updatedAt } = facts;
  const is: BuyStream = {
    ...known,
    askedAt,
    ...(asOf !== undefined && { saidAt: Math.min(asOf, askedAt) }),
    ...(changes !== undefined && { changes }),
    ...(updatedAt !== undefined && { updatedAt }),
    status: facts.status,
    ...(facts.revision !== undefined && { revision: facts.revision }),
    ...(isTerminalBuy(facts.status) && { endedAt }),
    products: [...new Set([...stream.products, ...fitting])].slice(0, MOST_PRODUCTS),
  };
  if (!isChanged) return is;
  return placedAnew({ ...is, terms: termsBy(stream, facts, { askedAt, isFirst }) });
}

function termsBy(
  stream: BuyStream,
  facts: MediaBuyFacts,
  { askedAt, isFirst }: { readonly askedAt: number; readonly isFirst: boolean },
): readonly Terms[] {
  const { frequency, terms, since } = stream;
  const spans = spansOf(facts.flight, terms[0]?.spans[0]?.start ?? since, since);
  const changed = changedAt(facts, stream, askedAt);
  const start = Math.min(spans[0]?.start ?? since, since);
  const begun = (isFirst ? isSettled(stream, changed) : terms.length === 0)
    ? withTerms([], { from: start, frequency, spans })
    : terms;
  const from = Math.max(changed, begun.at(-1)?.from ?? changed);
  return isOff(facts, begun, from)
    ? begun
    : withTerms(begun, { from, frequency, spans: spansNow(facts, spans) });
}

/**
 * True if an answer's facts apply from the start of the media buy: they are the first ones, or did not change after
 * the registration. The call that creates a media buy may leave start and end open, and the seller then sets them
 * immediately. A later `update_media_buy` never applies from the start.
 */
const isSettled = ({ terms, since }: BuyStream, changed: number): boolean =>
  terms.length === 0 || (terms.length === 1 && changed <= since);

/**
 * True if the media buy completed after its planned end. It then keeps its terms, so it owes the same reports as
 * before.
 */
const isOff = ({ status }: MediaBuyFacts, terms: readonly Terms[], from: number): boolean =>
  status === 'completed' && (terms.at(-1)?.spans.at(-1)?.end ?? -Infinity) <= from;

const spansNow = ({ status }: MediaBuyFacts, spans: readonly Period[]): readonly Period[] =>
  isStopped(status) ? [] : spans;

const isStopped = (status: string): boolean => isTerminalBuy(status) || status === 'paused';

/**
 * Returns the time from which changed facts apply: the time of the change, as the seller states it, within two bounds.
 * - The latest is the time of the request.
 * - The earliest is the time of the last answer, which was correct then. If `updatedAt` has grown and the media buy
 *   goes on, the earliest is the previous `updatedAt`.
 * A stop is never moved before the last answer, because reports that are owed would no longer be expected.
 */
function changedAt(facts: MediaBuyFacts, stream: BuyStream, askedAt: number): number {
  const { status, canceledAt, updatedAt } = facts;
  const { askedAt: last = -Infinity, saidAt: before = last, updatedAt: known } = stream;
  const at = Math.min(canceledAt ?? updatedAt ?? askedAt, askedAt);
  const isNews = updatedAt !== undefined && known !== undefined && known < updatedAt;
  return isNews && !isStopped(status) ? Math.max(at, known) : Math.max(before, at);
}

/**
 * Ends the media buy as an event or a call reported (`endSaid`). This is used if the seller cannot be asked
 * (owed.md §7.1). The end is not before a window whose report has arrived, because that window was owed.
 */
export function withWord(stream: BuyStream, now: number): BuyStream {
  const { endSaid, revision: _other, ...known } = stream;
  const last = stream.terms.at(-1);
  if (!endSaid || isTerminalBuy(stream.status)) return stream;
  const { status, at } = endSaid;
  if (!last) return hasReports(stream) ? stream : { ...known, status, endedAt: at, endSaid };
  const from = Math.max(Math.min(Math.max(at, hadUntil(stream)), now), last.from + 1);
  // A media buy that completed after its planned end keeps its terms, so it owes the same reports as before.
  const isOff = status === 'completed' && (last.spans.at(-1)?.end ?? -Infinity) <= now;
  const terms = isOff ? stream.terms : withTerms(stream.terms, { ...last, from, spans: [] });
  return { ...known, terms, status, endedAt: from, endSaid };
}

/** Removes the end that an event or a call reported (`endSaid`), because the seller's own answer now counts. */
function withoutWord(stream: BuyStream): BuyStream {
  const { endSaid, ...is } = stream;
  if (!endSaid || !isTerminalBuy(stream.status)) return is;
  const { endedAt, status: _said, ...known } = is;
  return { ...known, terms: stream.terms.filter(({ from, spans }) => from !== endedAt || spans.length > 0) };
}

/** Returns the end of the latest window whose report was handled. Unix ms. */
function hadUntil(stream: BuyStream): number {
  const clock = clockIn(stream);
  const ends = frequenciesIn(stream).flatMap((frequency) => {
    const end = hadIn(stream, frequency).at(-1)?.[1];
    return end === undefined ? [] : windowPeriod(frequency, clock, end - 1).end;
  });
  return Math.max(...ends);
}
