import type { AcceptRequest, ReportClaim } from '../../../src/stores/index.ts';
import { accept, complete, fail, type QueueRows, type RecordRow } from '../../../src/stores/for-tests.ts';
import { completedIn, standsIn, streamIn, streamText } from '../../../src/windows/for-tests.ts';
import type { System } from './system.ts';
import { REAL } from './system.ts';
import { BUY, WINDOW } from './window.ts';

/** Rules of reports (owed.md §3) without one of their parts. */

/** A request whose report is told as another one. */
function withReport(
  { event, ...request }: AcceptRequest,
  change: (report: ReportClaim) => ReportClaim,
): AcceptRequest {
  if (!event?.report) return { ...request, ...(event && { event }) };
  return { ...request, event: { ...event, report: change(event.report) } };
}

const withoutWindows = ({ windows: _none, ...report }: ReportClaim): ReportClaim => report;
const asSent = ({ isPulled: _none, ...report }: ReportClaim): ReportClaim => report;

/** The windows of an event are had. */
function markHad(rows: QueueRows, sender: string, key: string, now: number): void {
  const row = rows.registration('stream', sender, BUY, now);
  if (row) rows.saveRegistration({ ...row, value: streamText(completedIn(streamIn(row.value), key)) }, now);
}

/** What the step that completes an event writes of its windows is left to another step. */
export const MARKED_BESIDE: System = {
  ...REAL,
  complete: (rows, request, now) => complete({ ...rows, saveRegistration: () => {} }, request, now),
};

/** So is what the step that inserts it writes. */
export const CLAIMED_BESIDE: System = {
  ...REAL,
  admission: [(rows, request, now) => accept(rows, withReport(request, withoutWindows), now)],
};

const DUPLICATE = { kind: 'done', state: 'applied', changed: false, died: false } as const;

/** Whether the window of a pull came is looked at in a step before its insertion. */
export const LOOKED_AT_BEFORE: System = {
  ...REAL,
  admission: [
    (rows, request, now) => {
      if (!request.event?.report?.isPulled) return undefined;
      const decision = accept({ ...rows, ...UNWRITTEN }, request, now);
      return decision.kind === 'done' ? decision : undefined;
    },
    (rows, request, now) => accept(rows, withReport(request, asSent), now),
  ],
};

const UNWRITTEN: Partial<QueueRows> = {
  insertRecord: () => {},
  updateRecord: () => {},
  saveRegistration: () => {},
};

/** An event that is not done has its window. */
export const UNSAFE_IS_HAD: System = {
  ...REAL,
  admission: [
    (rows, request, now) => {
      const decision = accept(rows, request, now);
      if (decision.kind === 'won') markHad(rows, request.sender, request.event?.key ?? '', now);
      return decision;
    },
  ],
};

/** A failed run is as good as a completed one. */
export const FAILED_IS_HAD: System = {
  ...REAL,
  fail: (rows, request, now) => {
    const result = fail(rows, request, now);
    if (result !== 'lost') markHad(rows, request.sender, request.key, now);
    return result;
  },
};

/** The account of an accept, whose claims stand by another rule. */
function standing(stands: (record: RecordRow | undefined) => boolean): System {
  return {
    ...REAL,
    admission: [
      (rows, request, now) => {
        const row = rows.registration('stream', request.sender, BUY, now);
        const isThere = (key: string): boolean => stands(rows.record(request.sender, key, now));
        const isPulled = request.event?.report?.isPulled === true;
        if (isPulled && row && standsIn(streamIn(row.value), WINDOW, { isThere })) return DUPLICATE;
        return accept(rows, withReport(request, asSent), now);
      },
    ],
  };
}

/** What an event that was discarded, or is forgotten, has claimed counts on. */
export const GONE_STANDS: System = standing(() => true);

/** A window whose event is DEAD is missing. */
export const DEAD_IS_MISSING: System = standing(
  (record) => record?.state === 'queued' || record?.state === 'leased',
);

/** A webhook is not told that its window came before. */
export const NOT_TOLD: System = {
  ...REAL,
  admission: [
    (rows, request, now) => {
      const insertRecord: QueueRows['insertRecord'] = ({ windows, ...row }, body) => {
        const untold = windows?.map(({ isRepeated: _none, ...window }) => window) ?? null;
        rows.insertRecord({ ...row, windows: untold }, body);
      };
      return accept({ ...rows, insertRecord }, request, now);
    },
  ],
};

/** A reconciler leaves an event as it is whose seller has given up. */
export const NOT_MADE_SAFE: System = { ...REAL, acknowledge: () => {} };
