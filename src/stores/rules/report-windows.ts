// Records delivery reports in the account of each media buy, its row of kind `stream` (owed.md §3). A report claims
// windows when it is inserted, and fills them when it is completed.
// Called by accept and by complete. An event that is no report changes an account only by the URL to which it was sent.
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

/**
 * True for the key of an event that may still be handled, or is DEAD. Report windows that any other event claimed no
 * longer count as claimed.
 */
const isThere =
  ({ rows, request, now }: Accepting) =>
  (key: string): boolean => {
    const state = rows.record(request.sender, key, now)?.state;
    return state === 'queued' || state === 'leased' || state === 'dead';
  };

const reportStep = (step: Accepting): ReportStep => ({ now: step.now, isThere: isThere(step) });

/**
 * True if a report that the buyer pulled is a duplicate (owed.md §3.2). The data of each of its windows came before, or
 * are in another event that may still be handled or is DEAD.
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

/** The report windows that an event claims: the event brings their data, and is not done yet. */
interface Claims {
  readonly windows: readonly ClaimedWindow[] | null;
  /**
   * True if some windows were not kept: nobody has registered their media buys, and the seller has named too many such
   * media buys.
   */
  readonly isDropped: boolean;
}

/**
 * Records a report when its event is inserted: the windows whose data it brings (owed.md §3.1), and the end of media
 * buys (§7.1, §7.3). For every event, records the URL to which the event was sent.
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
 * Records the end of media buys that a `final` report names without a readable period, because no report of them
 * follows.
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
 * The largest number of unregistered media buys of a seller whose report periods are kept. A seller could name any
 * number of media buys (owed.md §3.6).
 */
const MOST_UNKNOWN = 1000;

/**
 * The id of the row that counts a seller's unregistered media buys. It expires together with the first of them. Sellers
 * cannot choose ids of its kind, `route`.
 */
const UNKNOWN_ID = 'unknown-media-buys';

/**
 * Counts one more unregistered media buy of the seller.
 *
 * @returns true if the media buy may be kept; false if the maximum is reached.
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
 * Loads the accounts of a report's media buys in one query. A second query loads the records of events that claim the
 * same windows.
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
 * Records that an event brings the data of one report window.
 *
 * @returns the window. Undefined for an unregistered media buy with nothing to keep; null if its seller has too many
 *   unregistered media buys.
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
 * Makes an account due immediately if anything arrives for a closed media buy, or if a report says that the media buy
 * has ended. A pulled report does so only for a closed media buy. The reconciler that pulled the report has reserved
 * the account, and has yet to save the result of its pull there.
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
 * Returns the account with the time of an event at the URL to which it was sent. Unchanged if the seller was not asked
 * to send there (told.md §1.3).
 */
function heardBy(stream: Stream, via: UrlClaim | undefined, now: number): Stream {
  const told = via && stream.told && withHeard(stream.told, via, now);
  return told && told !== stream.told ? { ...stream, told } : stream;
}

/** Records the use of the URL in the accounts of media buys that the event changes in no other way. */
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

/** Makes the row of kind `stream` for a media buy that nobody has registered. The row expires (owed.md §3.6). */
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

/**
 * Records in each account that the data of the report's windows have come, because the report's handler has completed
 * (owed.md §3.4).
 */
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
