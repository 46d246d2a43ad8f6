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

/*
 * What reports bring, in the account of each media buy (owed.md §3): written in the step that inserts the report's event, and in the
 * one that completes it. Reports alone come here.
 */

/** Records that may still be handled, or are DEAD. One that was handed on has no claim any more. */
const isThere =
  ({ rows, request, now }: Accepting) =>
  (key: string): boolean => {
    const state = rows.record(request.sender, key, now)?.state;
    return state === 'queued' || state === 'leased' || state === 'dead';
  };

const reportStep = (step: Accepting): ReportStep => ({ now: step.now, isThere: isThere(step) });

/** Whether a pulled report's window came before, or is about to be handled (owed.md §3.2). */
export function cameBefore(step: Accepting, { report }: EventClaim): boolean {
  if (report?.isPulled !== true || !report.windows) return false;
  const { rows, request, now } = step;
  needClaims(step, report.windows);
  return report.windows.every(({ id, start, end }) => {
    const row = rows.registration('stream', request.sender, id, now);
    return row !== undefined && standsIn(streamIn(row.value), { start, end }, reportStep(step));
  });
}

/** The claims of a report. */
interface Claims {
  readonly windows: readonly ClaimedWindow[] | null;
  /** Some were of media buys that nobody has registered, and the seller has too many of these. */
  readonly isDropped: boolean;
}

/**
 * At insertion: what the report claims (owed.md §3.1), and says of the end of its media buys (§7.1, §7.3); and by which URL the event
 * came.
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

/** A `final` report without a period that can be read is the last one, too. */
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

/** Media buys of a seller that nobody has registered, and whose periods are kept: it could name any (owed.md §3.6). */
const MOST_UNKNOWN = 1000;

/** Of the row that counts them, until the first that it counts is gone. No seller chooses ids of its kind. */
const UNKNOWN_ID = 'unknown-media-buys';

/** Counts one more. @returns whether it may be kept. */
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

/** The streams of a report, and the records of events that claim the same windows: each at once. */
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
 * @returns undefined for a media buy that nobody has registered, where there is nothing to keep of it; null, where its seller has
 * too many of them.
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
 * What comes late for a media buy that is closed is looked at at once, and what is said of an end; not what the one who looks at it has
 * pulled, for what comes of the pull is written yet.
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

/** The stream with the URL by which an event came, where its media buy was told that (told.md §1.3). */
function heardBy(stream: Stream, via: UrlClaim | undefined, now: number): Stream {
  const told = via && stream.told && withHeard(stream.told, via, now);
  return told && told !== stream.told ? { ...stream, told } : stream;
}

/** Of media buys whose streams the event writes for nothing else. */
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

/** Of a media buy that nothing is known of yet (owed.md §3.6). */
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

/** Its handler has completed (owed.md §3.4). */
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
