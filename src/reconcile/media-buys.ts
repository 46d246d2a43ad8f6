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

/*
 * What `get_media_buys` says of a media buy, and what that makes of its terms (owed.md §1.2, §1.3).
 */

/** A media buy as its seller describes it. */
export interface MediaBuyFacts {
  readonly status: string;
  /** Changes whenever the buy does; undefined where the seller says neither. */
  readonly revision?: string;
  /** `revision`, where it is a number: it counts changes. */
  readonly changes?: number;
  /** When it changed last, Unix ms. */
  readonly updatedAt?: number;
  /** When it was canceled, Unix ms. */
  readonly canceledAt?: number;
  /** The instant that the seller says the answer is of, Unix ms. */
  readonly asOf?: number;
  readonly flight: Parameters<typeof spansOf>[0];
  readonly products: readonly string[];
}

/** The media buys of an answer that are asked for, and say their status. */
export function mediaBuyRows(data: unknown, ids: ReadonlySet<string>): ReadonlyMap<string, JsonObject> {
  const found = new Map<string, JsonObject>();
  for (const row of listedRows(data)) {
    const id = textMember(row, 'media_buy_id');
    const isAsked = id !== undefined && ids.has(id) && textMember(row, 'status') !== undefined;
    if (isAsked && !found.has(id)) found.set(id, row);
  }
  return found;
}

/** @param row of a media buy, with a status. */
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

/** By what a change of a media buy is seen. */
export function standingIn(row: JsonObject): Pick<MediaBuyFacts, 'status' | 'revision'> {
  const revision = present(row, 'revision');
  const said = [textMember(row, 'updated_at'), revision === undefined ? undefined : JSON.stringify(revision)];
  const says = said.filter((one) => one !== undefined).join(' ');
  const status = (textMember(row, 'status') ?? '').slice(0, MAX_REVISION);
  return { status, ...(says && { revision: says.slice(0, MAX_REVISION) }) };
}

/** Of a buy, and the length of each: they are handed to the owner's function alone. */
const MOST_PRODUCTS = 100;
const MAX_PRODUCT_ID = 255;

const isAnother = ({ askedAt, revision }: BuyStream, facts: MediaBuyFacts): boolean =>
  askedAt === undefined || facts.revision === undefined || facts.revision !== revision;

/** Whether an answer is older than the last one, as far as both say: a seller's machines may be behind each other (owed.md §1.3). */
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

/** The stream by what its seller says of the buy now. @param askedAt when it was asked, on the store's clock. */
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

/** What a seller settles at once was so from the start: a call may leave the start open, and the end. An update of ours may not. */
const isSettled = ({ terms, since }: BuyStream, changed: number): boolean =>
  terms.length === 0 || (terms.length === 1 && changed <= since);

/** A buy that has come to its end by itself owes what it owed. */
const isOff = ({ status }: MediaBuyFacts, terms: readonly Terms[], from: number): boolean =>
  status === 'completed' && (terms.at(-1)?.spans.at(-1)?.end ?? -Infinity) <= from;

const spansNow = ({ status }: MediaBuyFacts, spans: readonly Period[]): readonly Period[] =>
  isStopped(status) ? [] : spans;

const isStopped = (status: string): boolean => isTerminalBuy(status) || status === 'paused';

/**
 * When the buy became what it is: a seller's word, as far as it can be. The last answer said what held at its time; one that did not
 * know yet that the buy goes on was of a time before that. An end is not taken for earlier so: that would take windows away.
 */
function changedAt(facts: MediaBuyFacts, stream: BuyStream, askedAt: number): number {
  const { status, canceledAt, updatedAt } = facts;
  const { askedAt: last = -Infinity, saidAt: before = last, updatedAt: known } = stream;
  const at = Math.min(canceledAt ?? updatedAt ?? askedAt, askedAt);
  const isNews = updatedAt !== undefined && known !== undefined && known < updatedAt;
  return isNews && !isStopped(status) ? Math.max(at, known) : Math.max(before, at);
}

/**
 * The stream by what was said of its end, where its seller cannot be asked about it (owed.md §7.1). What has come of later windows
 * says that they were owed.
 */
export function withWord(stream: BuyStream, now: number): BuyStream {
  const { endSaid, revision: _other, ...known } = stream;
  const last = stream.terms.at(-1);
  if (!endSaid || isTerminalBuy(stream.status)) return stream;
  const { status, at } = endSaid;
  if (!last) return hasReports(stream) ? stream : { ...known, status, endedAt: at, endSaid };
  const from = Math.max(Math.min(Math.max(at, hadUntil(stream)), now), last.from + 1);
  // It came to its end by itself, and owes what it owed.
  const isOff = status === 'completed' && (last.spans.at(-1)?.end ?? -Infinity) <= now;
  const terms = isOff ? stream.terms : withTerms(stream.terms, { ...last, from, spans: [] });
  return { ...known, terms, status, endedAt: from, endSaid };
}

/** What counted where nobody could be asked does so no more: the seller has answered. */
function withoutWord(stream: BuyStream): BuyStream {
  const { endSaid, ...is } = stream;
  if (!endSaid || !isTerminalBuy(stream.status)) return is;
  const { endedAt, status: _said, ...known } = is;
  return { ...known, terms: stream.terms.filter(({ from, spans }) => from !== endedAt || spans.length > 0) };
}

/** The end of the last window that is had. Unix ms. */
function hadUntil(stream: BuyStream): number {
  const clock = clockIn(stream);
  const ends = frequenciesIn(stream).flatMap((frequency) => {
    const end = hadIn(stream, frequency).at(-1)?.[1];
    return end === undefined ? [] : windowPeriod(frequency, clock, end - 1).end;
  });
  return Math.max(...ends);
}
