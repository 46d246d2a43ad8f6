// Records reports in the account of each media buy (owed.md §3): their claims at insertion, their end at completion.
// Called by accept and by complete. Other events change an account only by the URL to which they were sent.
import {
  claimantsIn,
  claimedIn,
  completedIn,
  emptyStream,
  type Reported,
  type ReportStep,
  standsIn,
  type Stream,
  streamIn,
  streamText,
} from '../../windows/stream.ts';
import { withReportedEnd } from '../../windows/ends.ts';
import { withHeard } from '../../windows/told.ts';
import type {
  ClaimedWindow,
  EventClaim,
  RegistrationRow,
  ReportClaim,
  UrlClaim,
  WindowClaim,
} from '../store.ts';
import { markExpiry } from './order.ts';
import type { RecordRow, Rows } from './rule-rows.ts';
import type { Accepting } from './task-wait.ts';

/** True for records that may still be handled, or are DEAD. Other records no longer claim their windows. */
const isThere =
  ({ rows, request, now }: Accepting) =>
  (key: string): boolean => {
    const state = rows.record(request.sender, key, now)?.state;
    return state === 'queued' || state === 'leased' || state === 'dead';
  };

const reportStep = (step: Accepting): ReportStep => ({ now: step.now, isThere: isThere(step) });

/**
 * True if each window of a pulled report was reported before, or is claimed by an event that may still be handled
 * (owed.md §3.2).
 */
export function cameBefore(step: Accepting, { report }: EventClaim): boolean {
  if (report?.isPulled !== true || !report.windows) return false;
  const { rows, request, now } = step;
  needClaims(step, report.windows);
  return report.windows.every(({ id, start, end }) => {
    const row = rows.registration('stream', request.sender, id, now);
    return row !== undefined && standsIn(streamIn(row.value), { start, end }, reportStep(step));
  });
}

/** The windows that a report claims. */
interface Claims {
  readonly windows: readonly ClaimedWindow[] | null;
  /** True if some windows were dropped: nobody registered their media buys, and the seller has too many of these. */
  readonly isDropped: boolean;
}

/**
 * Saves a report at insertion: the windows that it claims (owed.md §3.1), and the end that it reports of its media
 * buys (§7.1, §7.3). For every event it saves the URL to which the event was sent.
 */
export function claimWindows(step: Accepting, { key, report, via }: EventClaim): Claims {
  if (via) noteUrl(step, via);
  if (report?.windows && report.final) noteFinals(step, report, report.windows);
  if (!report?.windows?.length) return { windows: null, isDropped: false };
  const { rows, request, now } = step;
  needClaims(step, report.windows);
  const isFinal = report.final;
  const claimed = report.windows.map((window) => {
    const row = rows.registration('stream', request.sender, window.id, now);
    return claimWindow(step, { ...window, key, isFinal, via }, row);
  });
  return { windows: claimed.flatMap((one) => one ?? []), isDropped: claimed.includes(null) };
}

/**
 * Saves the end of media buys that a `final` report names without a readable period: it is their last report, too.
 */
function noteFinals(step: Accepting, { mediaBuyIds }: ReportClaim, windows: readonly WindowClaim[]): void {
  const { rows, request, now } = step;
  const claimed = new Set(windows.map(({ id }) => id));
  const others = mediaBuyIds.filter((id) => !claimed.has(id)).map((id) => ({ id }));
  needStreams(rows, request.sender, others);
  for (const { id } of others) {
    const row = rows.registration('stream', request.sender, id, now);
    if (!row) continue;
    const known = streamIn(row.value);
    const stream = withReportedEnd(known, { isFinal: true, isRevision: false, end: now }, now);
    rows.saveRegistration(withStream(lookedAt(step, row, known, stream), stream), now);
  }
}

/**
 * The most unregistered media buys of a seller whose periods are kept, because a seller could name any number of them
 * (owed.md §3.6).
 */
const MOST_UNKNOWN = 1000;

/**
 * The row that counts the unregistered media buys. It is kept until the first of them has expired. Sellers cannot
 * choose ids of this kind of row.
 */
const UNKNOWN_ID = 'unknown-media-buys';

/**
 * Counts one more unregistered media buy.
 *
 * @returns true if it may be kept; false if the maximum is reached.
 */
function countUnknown(step: Accepting): boolean {
  const { rows, request, now } = step;
  const row = rows.registration('route', request.sender, UNKNOWN_ID, now);
  const count = Number(row?.value ?? 0);
  if (count >= MOST_UNKNOWN) return false;
  const counting = row ?? { ...unknownBuy(step, UNKNOWN_ID), kind: 'route' };
  rows.saveRegistration({ ...counting, value: String(count + 1) }, now);
  return true;
}

const needStreams = (rows: Rows, sender: string, of: readonly { readonly id: string }[]): void =>
  rows.needRows?.(
    sender,
    of.map(({ id }) => ({ kind: 'stream', id })),
  );

/**
 * Loads the accounts of a report's media buys, then the records that claim the same windows, each kind in one load.
 */
function needClaims({ rows, request: { sender }, now }: Accepting, windows: readonly WindowClaim[]): void {
  needStreams(rows, sender, windows);
  if (!rows.needRows) return;
  const keys = windows.flatMap((window) => {
    const row = rows.registration('stream', sender, window.id, now);
    return row ? claimantsIn(streamIn(row.value), window) : [];
  });
  rows.needRows(
    sender,
    keys.map((id) => ({ kind: 'record', id })),
  );
}

/**
 * Saves the claim of one window.
 *
 * @returns undefined for an unregistered media buy with nothing to keep; null if its seller has too many of these.
 */
function claimWindow(
  step: Accepting,
  reported: WindowClaim & Reported & { readonly via: UrlClaim | undefined },
  row: RegistrationRow | undefined,
): ClaimedWindow | null | undefined {
  const { rows, now } = step;
  const { id, mediaBuyId } = reported;
  const known = row ? streamIn(row.value) : emptyStream(mediaBuyId);
  const ends = withReportedEnd(known, reported, now);
  const { stream, window, isRepeated } = claimedIn(ends, reported, reportStep(step));
  if (!row && stream.unplaced.length === 0) return undefined;
  if (!row && !countUnknown(step)) return null;
  const kept = row ? lookedAt(step, row, known, stream) : unknownBuy(step, id);
  rows.saveRegistration(withStream(kept, heardBy(stream, reported.via, now)), now);
  return {
    id,
    ...(mediaBuyId !== id && { mediaBuyId }),
    ...(window && { period: window }),
    ...(isRepeated && { isRepeated }),
  };
}

/**
 * Makes an account due at once if something arrives for a closed media buy, or if a report says that a media buy has
 * ended. A pulled report does so only for a closed one: the reconciler that pulled it saves the result itself.
 */
function lookedAt(
  { request, now }: Accepting,
  row: RegistrationRow,
  known: Stream,
  stream: Stream,
): RegistrationRow {
  const isSaid = known.final !== stream.final || known.changedAt !== stream.changedAt;
  const isNews = row.list === 'closed' || (isSaid && request.event?.report?.isPulled !== true);
  return isNews && row.list !== null ? { ...row, dueAt: now } : row;
}

/**
 * Returns the account with the URL to which an event was sent, if that URL was registered for its media buy (told.md
 * §1.3).
 */
function heardBy(stream: Stream, via: UrlClaim | undefined, now: number): Stream {
  const told = via && stream.told && withHeard(stream.told, via, now);
  return told && told !== stream.told ? { ...stream, told } : stream;
}

/** Saves the URL in the accounts of media buys that the event changes in no other way. */
function noteUrl({ rows, request: { sender }, now }: Accepting, via: UrlClaim): void {
  needStreams(
    rows,
    sender,
    via.streams.map((id) => ({ id })),
  );
  for (const id of via.streams) {
    const row = rows.registration('stream', sender, id, now);
    const known = row && streamIn(row.value);
    const stream = known && heardBy(known, via, now);
    if (row && stream && stream !== known) rows.saveRegistration(withStream(row, stream), now);
  }
}

/** Makes the row of a media buy that nobody has registered (owed.md §3.6). */
const unknownBuy = ({ request, now }: Accepting, id: string): RegistrationRow => ({
  kind: 'stream',
  sender: request.sender,
  id,
  value: '',
  dueAt: null,
  list: null,
  expiresAt: markExpiry(now, request.retentionMs),
});

const withStream = (row: RegistrationRow, stream: Stream): RegistrationRow => ({
  ...row,
  value: streamText(stream),
});

/** Records in each account that the report's handler has completed (owed.md §3.4). */
export function completeWindows(
  rows: Rows,
  { sender, key }: RecordRow,
  windows: readonly ClaimedWindow[],
  now: number,
): void {
  needStreams(rows, sender, windows);
  for (const { id } of windows) {
    const row = rows.registration('stream', sender, id, now);
    if (row) rows.saveRegistration(withStream(row, completedIn(streamIn(row.value), key)), now);
  }
}
