// Keeps the latest deliveries in memory, within bounds (dev.md §4.4). Sending, captures and the hooks write it; the
// API reads it.
import type { SignedDelivery } from '../sender/sign.ts';
import type { PostResult } from '../testing/seller-post.ts';
import type { DeliveryList, DeliveryRow, ShownExplanation, Told } from './wire.ts';

/** The most deliveries that are kept, and their bytes together (dev.md §4.4). */
const MOST_DELIVERIES = 1_000;
const MOST_BYTES = 64 * 1024 * 1024;
/** The bytes that are kept of one body. */
const MOST_BODY_BYTES = 1024 * 1024;
/** The most tellings of hooks that are kept of one delivery. */
const MOST_TELLINGS = 20;
const PAGE = 100;

/** A delivery as it went out or was captured: a field on several lines has a list of values. */
export interface Posted extends Omit<SignedDelivery, 'method' | 'headers'> {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
}

/** An answer; `cut` if there was more of its body. */
export interface Answer extends PostResult {
  readonly cut: boolean;
}

/** One delivery with everything that is kept of it. */
export interface Entry {
  readonly row: DeliveryRow;
  /** The delivery; its body has at most 1 MiB of what was sent. */
  readonly posted: Posted;
  /** The URL that it was posted to. Absent of a capture. */
  readonly to?: string;
  /** True if the capture has no body: it was refused by its headers. */
  readonly bodyless?: boolean;
  /** The length of the whole body, bytes. */
  readonly bytes: number;
  /** The idempotency key, by which hooks name its event. */
  readonly key?: string | undefined;
  /** The value of its signature or HMAC. */
  readonly proof?: string | undefined;
  readonly answer?: Answer;
  readonly explanation?: ShownExplanation;
  readonly explainError?: string;
  readonly tellings: readonly Told[];
}

/** The facts that may become known of an entry later. */
export interface EntryChange extends Partial<Pick<Entry, 'answer' | 'explanation' | 'explainError'>> {
  readonly row?: Partial<Omit<DeliveryRow, 'id'>>;
  /** One more telling of a hook. */
  readonly told?: Told;
}

/** The latest deliveries, in memory alone. */
export interface DeliveryLog {
  readonly add: (
    entry: Omit<Entry, 'row' | 'bytes' | 'tellings'> & { readonly row: Omit<DeliveryRow, 'id' | 'bytes'> },
  ) => Entry;
  /** @returns the entry as it is now; undefined: it is no longer kept. */
  readonly change: (id: number, change: EntryChange) => Entry | undefined;
  readonly get: (id: number) => Entry | undefined;
  /** The latest entry that fits. */
  readonly findLast: (fits: (entry: Entry) => boolean) => Entry | undefined;
  /** Every entry that fits, the oldest first. */
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

/** Makes an empty log. @param changed called for each row that is new or has changed. */
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
