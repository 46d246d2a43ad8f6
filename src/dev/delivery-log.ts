// Keeps the latest deliveries in memory, up to a number and a size (dev.md §4.4). Sending, captures and reports of the
// receiver's hooks write to the log; the API reads it.
import type { SignedDelivery } from '../sender/sign.ts';
import type { PostResult } from '../testing/seller-post.ts';
import type { DeliveryList, DeliveryRow, ShownExplanation, Told } from './wire.ts';

/** The most deliveries that are kept. `MOST_BYTES` limits their total size (dev.md §4.4). */
const MOST_DELIVERIES = 1_000;
const MOST_BYTES = 64 * 1024 * 1024;
/** The most bytes that are kept of the body of one delivery. */
const MOST_BODY_BYTES = 1024 * 1024;
/** The most reports of the receiver's hooks (`devHooks`) that are kept for one delivery. */
const MOST_TELLINGS = 20;
const PAGE = 100;

/** A request as it was sent or captured. A header on several lines has a list of values. */
export interface Posted extends Omit<SignedDelivery, 'method' | 'headers'> {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
}

/** The receiver's answer to a delivery. `cut` is true if only the beginning of the answer's body was kept. */
export interface Answer extends PostResult {
  readonly cut: boolean;
}

/** A logged delivery: the request, its answer, its explanation, and what the receiver's hooks reported about it. */
export interface Entry {
  readonly row: DeliveryRow;
  /** The request. Its body is cut after 1 MiB. */
  readonly posted: Posted;
  /** The URL that the request was posted to. Absent for a captured request. */
  readonly to?: string;
  /** True if a captured request has no body, because the receiver refused it by its headers alone. */
  readonly bodyless?: boolean;
  /** The length of the whole body, bytes, even if only a part is kept. */
  readonly bytes: number;
  /** The idempotency key of the event in the body. The receiver's hooks name the event by this key. */
  readonly key?: string | undefined;
  /**
   * The value of the request's signature header or HMAC header. The receiver's hooks name a refused request by this
   * value.
   */
  readonly proof?: string | undefined;
  readonly answer?: Answer;
  readonly explanation?: ShownExplanation;
  readonly explainError?: string;
  readonly tellings: readonly Told[];
}

/** Members of a logged delivery that become known later. */
export interface EntryChange extends Partial<Pick<Entry, 'answer' | 'explanation' | 'explainError'>> {
  readonly row?: Partial<Omit<DeliveryRow, 'id'>>;
  /** A further report of the receiver's hooks about the delivery. */
  readonly told?: Told;
}

/** The log of the latest deliveries. It is in memory alone, and lost when dev ends. */
export interface DeliveryLog {
  readonly add: (
    entry: Omit<Entry, 'row' | 'bytes' | 'tellings'> & { readonly row: Omit<DeliveryRow, 'id' | 'bytes'> },
  ) => Entry;
  /** Changes a logged delivery. @returns the changed delivery, or undefined if it is no longer kept */
  readonly change: (id: number, change: EntryChange) => Entry | undefined;
  readonly get: (id: number) => Entry | undefined;
  /** Returns the latest delivery for which `fits` returns true. */
  readonly findLast: (fits: (entry: Entry) => boolean) => Entry | undefined;
  /** Returns all deliveries for which `fits` returns true, oldest first. */
  readonly all: (fits: (entry: Entry) => boolean) => readonly Entry[];
  readonly page: (before: number | undefined) => DeliveryList;
}

function sizeOf({ posted, answer, explanation, tellings, row, ...rest }: Entry): number {
  return (
    posted.body.byteLength +
    (answer?.body.length ?? 0) +
    JSON.stringify([
      posted.method,
      posted.url,
      posted.headers,
      answer?.headers,
      explanation,
      tellings,
      row,
      rest,
    ]).length
  );
}

/** Makes an empty log. @param changed is called with the list row of each new or changed delivery. */
export function createDeliveryLog(changed: (row: DeliveryRow) => void): DeliveryLog {
  const entries = new Map<number, Entry>();
  const sizes = new Map<number, number>();
  let last = 0;
  let total = 0;

  const drop = (id: number): void => {
    entries.delete(id);
    total -= sizes.get(id) ?? 0;
    sizes.delete(id);
  };
  const keep = (entry: Entry): Entry => {
    const { id } = entry.row;
    entries.set(id, entry);
    const size = sizeOf(entry);
    total += size - (sizes.get(id) ?? 0);
    sizes.set(id, size);
    for (const oldest of entries.keys()) {
      if (entries.size <= MOST_DELIVERIES && total <= MOST_BYTES) break;
      if (oldest !== id) drop(oldest);
    }
    changed(entry.row);
    return entry;
  };

  return {
    add(draft) {
      last += 1;
      const { body } = draft.posted;
      const posted = { ...draft.posted, body: body.slice(0, MOST_BODY_BYTES) };
      const bytes = body.byteLength;
      return keep({ ...draft, posted, bytes, tellings: [], row: { ...draft.row, id: last, bytes } });
    },
    change(id, { row, told, ...rest }) {
      const entry = entries.get(id);
      if (!entry) return undefined;
      const tellings = told ? [...entry.tellings, told].slice(-MOST_TELLINGS) : entry.tellings;
      return keep({ ...entry, ...rest, tellings, row: { ...entry.row, ...row } });
    },
    get: (id) => entries.get(id),
    findLast: (fits) => [...entries.values()].findLast(fits),
    all: (fits) => [...entries.values()].filter(fits),
    page(before = Number.POSITIVE_INFINITY) {
      const found = [...entries.values()].filter(({ row }) => row.id < before).toReversed();
      const rows = found.slice(0, PAGE).map(({ row }) => row);
      const next = found.length > PAGE ? rows.at(-1)?.id : undefined;
      return { rows, ...(next !== undefined && { before: next }) };
    },
  };
}
