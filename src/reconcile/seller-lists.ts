// Reads a seller's list of media buys or tasks page by page, until the list ends or a limit is reached (owed.md §10.2).
// `reconciler.discover` uses it.
import { utf8 } from '../codec/encoding.ts';
import { MAX_TEXT, printableText } from '../codec/printable.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import { failureOf, type PollFailure } from '../poll/failure.ts';
import { SellerError } from '../registrations/answer.ts';
import { RegistrationError } from '../registrations/registrations-errors.ts';
import { Fault, isOfKind } from '../shared/errors.ts';
import type { DiscoveryError } from './discover-types.ts';
import type { Entries } from './discovered.ts';
import { cursorIn } from './question.ts';

/**
 * `MOST_PAGES`: the most pages of a list that one call of `discover` reads. `MOST_IN_ALL`: the most pages that a call
 * and its continuations with `next` read together.
 */
const MOST_PAGES = 100;
const MOST_IN_ALL = 1000;
/** The number of entries that are requested for a page: the most that the protocol allows. */
export const A_PAGE = 100;

/** A position in a list: the number of pages before the next page, and its cursor ('' for the first page). */
export type Behind = readonly [pages: number, cursor: string];

/** The positions at which the next call continues the lists. A list without a position has ended. */
export type Places = { readonly [K in DiscoveryError['of']]?: Behind | undefined };

/** The positions at the beginning of all lists. */
const BEGINNING: Places = { mediaBuys: [0, ''], tasks: [0, ''] };

/** Returns the positions as the text of `next`; undefined if all lists have ended. */
export const textOf = (places: Places): string | undefined =>
  Object.values(places).some((one) => one !== undefined) ? JSON.stringify(places) : undefined;

/** Parses the text of `after` into positions. @throws RegistrationError if the text is not an earlier `next`. */
export function placesIn(after: unknown): Places {
  if (after === undefined) return BEGINNING;
  const parsed = typeof after === 'string' ? parseStrictObject(utf8(after)) : undefined;
  const { mediaBuys, tasks, ...others } = parsed?.ok ? parsed.value : { others: true };
  const known = [mediaBuys, tasks].filter((one) => one !== undefined);
  if (Object.keys(others).length > 0 || known.length === 0 || !known.every(isBehind)) {
    throw new RegistrationError(
      'request_invalid',
      "after: is not the next of an earlier answer. Pass that answer's next, or omit it.",
    );
  }
  return {
    ...(mediaBuys !== undefined && { mediaBuys: mediaBuys as Behind }),
    ...(tasks !== undefined && { tasks: tasks as Behind }),
  };
}

function isBehind(value: unknown): value is Behind {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [pages, cursor] = value as readonly unknown[];
  const isCount = Number.isSafeInteger(pages) && (pages as number) >= 0 && (pages as number) < MOST_IN_ALL;
  return isCount && typeof cursor === 'string' && cursor.length <= MAX_TEXT;
}

/** A list of a seller, and the functions that request and read its pages. */
export interface SellerList<T> {
  readonly of: DiscoveryError['of'];
  /** The member of the answer that has the list. */
  readonly name: string;
  /** Requests a page. */
  readonly ask: (pagination: { readonly max_results: number; readonly cursor?: string }) => Promise<unknown>;
  /** Reads the entries of a page; undefined if the answer has no such list. */
  readonly read: (data: unknown) => Entries<T> | undefined;
  readonly idOf: (one: T) => string;
  /** Returns the entries of a page that the store does not know. */
  readonly unknown: (found: readonly T[]) => Promise<readonly T[]>;
}

/** The result of reading the pages of a list. */
export interface ListRead<T> {
  readonly found: readonly T[];
  readonly errors: readonly DiscoveryError[];
  /** The number of pages that this call has read. */
  readonly pages: number;
  /** The error that ended the reading early, as it was thrown. */
  readonly thrown?: unknown;
  readonly next?: Behind;
}

/**
 * Reads a list from a position on. An error ends the reading, and the result then has the entries of the earlier pages.
 */
export async function readList<T>(list: SellerList<T>, [before, first]: Behind): Promise<ListRead<T>> {
  const reading = readingOf(list, first);
  let cursor = first;
  while (reading.pages() < MOST_PAGES) {
    const behind: Behind = [before + reading.pages(), cursor];
    try {
      const data = await list.ask({ max_results: A_PAGE, ...(cursor !== '' && { cursor }) });
      const next = await reading.take(data, before);
      if (next === undefined) return reading.read();
      cursor = next;
    } catch (thrown) {
      // A `Fault` means that the store is unavailable. It is then unknown which entries are new, so none are returned.
      if (isOfKind(thrown, Fault)) throw thrown;
      return { ...reading.read(errorOf(list.of, thrown)), thrown, ...(mayHelp(thrown) && { next: behind }) };
    }
  }
  return { ...reading.read(), next: [before + reading.pages(), cursor] };
}

function readingOf<T>(list: SellerList<T>, first: string) {
  const found: T[] = [];
  const [ids, cursors] = [new Set<string>(), new Set([first])];
  let [pages, unfit, left] = [0, 0, 0];
  /** Adds the entries of a page. @returns true if the page only repeats entries of earlier pages. */
  const add = async (entries: Entries<T>): Promise<boolean> => {
    pages += 1;
    unfit += entries.unfit;
    left += entries.left;
    const fresh = entries.found.filter((one) => !ids.has(list.idOf(one)));
    for (const one of fresh) ids.add(list.idOf(one));
    found.push(...(await list.unknown(fresh)));
    return entries.found.length > 0 && fresh.length === 0;
  };
  return {
    pages: () => pages,
    read: (error?: DiscoveryError): ListRead<T> => ({
      found,
      pages,
      errors: [...(error ? [error] : []), ...skipped(list.of, { unfit, left })],
    }),
    /**
     * Adds a page that the seller sent.
     * @returns the cursor of the next page; undefined after the last page.
     * @throws RegistrationError if the page has no list, or if no page can be read after it.
     */
    take: async (data: unknown, before: number): Promise<string | undefined> => {
      const entries = list.read(data);
      if (!entries) throw invalid(list, 'has no list of them');
      const isAgain = await add(entries);
      const next = cursorIn(data);
      if (next === undefined) return undefined;
      if (next === null) throw invalid(list, 'says that there is more, and gives no cursor');
      if (isAgain || cursors.has(next)) throw invalid(list, 'repeats a page, and would never end');
      if (before + pages >= MOST_IN_ALL) throw invalid(list, `has more than ${MOST_IN_ALL} pages`);
      cursors.add(next);
      return next;
    },
  };
}

const invalid = <T>({ name }: SellerList<T>, what: string): RegistrationError =>
  new RegistrationError(
    'answer_invalid',
    `The seller's answer about ${name} ${what}. Report it to the seller; what came before is there.`,
  );

function skipped(
  of: DiscoveryError['of'],
  { unfit, left }: Pick<Entries<unknown>, 'unfit' | 'left'>,
): readonly DiscoveryError[] {
  const says = (count: number, what: string): readonly DiscoveryError[] =>
    count === 0
      ? []
      : [{ of, code: 'answer_invalid', message: `Entries of the seller's answer that ${what}: ${count}.` }];
  return [
    ...says(unfit, 'cannot be adopted, for they have no id or task type, or one that is too long'),
    ...says(left, 'were not read, for a page has too many'),
  ];
}

/** Converts the error that ended the reading into an entry of `errors`. */
function errorOf(of: DiscoveryError['of'], thrown: unknown): DiscoveryError {
  const failure = failureOf(thrown);
  return { of, code: printableText(codeOf(thrown, failure)), message: failure.message };
}

function codeOf(thrown: unknown, failure: PollFailure): string {
  if (failure.kind === 'no-operation') return NO_LIST;
  if (isOfKind(thrown, RegistrationError)) return thrown.code;
  if (isOfKind(thrown, SellerError) && thrown.code !== '') return thrown.code;
  if (failure.kind === 'busy') return 'seller_busy';
  return failure.kind === 'refused' && failure.code !== '' ? failure.code : 'unanswered';
}

/** The error code for a seller that has no operation for the list. */
export const NO_LIST = 'no_operation';

/** True if the seller may answer the same request later, so that it is worth a further call with `next`. */
function mayHelp(thrown: unknown): boolean {
  const { kind } = failureOf(thrown);
  return (kind === 'busy' || kind === 'failed') && !isOfKind(thrown, RegistrationError);
}
