import type { AcceptRequest, TaskClaim } from '../../../src/stores/index.ts';
import {
  accept,
  complete,
  type QueueRows,
  type RecordRow,
  type TaskRow,
} from '../../../src/stores/for-tests.ts';
import { over } from './broken.ts';
import type { System } from './system.ts';
import { REAL, said } from './system.ts';

/** Rules of several channels (admission.md §5.9) without one of their parts. */

type Change = (row: TaskRow, key: string) => Partial<TaskRow>;

/** Tasks of which a part is not kept. */
function tasksWithout(change: Change): System {
  return over((rows) => ({
    task: (sender, id, now) => {
      const row = rows.task(sender, id, now);
      return row && { ...row, ...change(row, id) };
    },
  }));
}

/** The accept of a claim of which a part is not told. */
function claimsWithout(change: (claim: TaskClaim) => TaskClaim): System {
  const changed = ({ event, ...request }: AcceptRequest): AcceptRequest =>
    event?.task
      ? { ...request, event: { ...event, task: change(event.task) } }
      : { ...request, ...(event && { event }) };
  return { ...REAL, admission: [(rows, request, now) => accept(rows, changed(request), now)] };
}

/** An end whose sender may give up is said to be safe. */
export const SAID_SAFE_UNACKED: System = {
  ...REAL,
  said: (rows, of, now) => {
    const { end, last } = said(rows, of, now);
    return { end: end === 'unsafe' ? 'safe' : end, last };
  },
};

/** An end that is stale by now is still said to be one. */
export const SAID_ENDED_WHEN_STALE: System = {
  ...REAL,
  said: (rows, of, now) => {
    const first = rows.task(of.sender, of.id, now)?.terminal;
    const { end = first ? 'safe' : undefined, last } = said(rows, of, now);
    return { end, last };
  },
};

/** A task's first end is noted, and not that it was applied. */
export const APPLIED_NOT_NOTED: System = {
  ...REAL,
  complete: (rows, request, now) => {
    const saveTask = ({ terminal, ...row }: TaskRow): void => {
      const { terminal: before = null } = rows.task(row.sender, row.id, now) ?? {};
      rows.saveTask({ ...row, terminal: terminal?.state === 'applied' ? before : terminal });
    };
    return complete({ ...rows, saveTask }, request, now);
  },
};

/** Which status was applied last is not noted where a task has one already. */
export const LAST_NOT_NOTED: System = {
  ...REAL,
  complete: (rows, request, now) => {
    const saveTask = (row: TaskRow): void => {
      rows.saveTask({ ...row, told: rows.task(row.sender, row.id, now)?.told ?? row.told });
    };
    return complete({ ...rows, saveTask }, request, now);
  },
};

/** No task's end is kept: what another channel tells of it is an event like any other. */
export const END_NOT_KEPT: System = tasksWithout(() => ({ terminal: null }));

/** Which status a task has is not kept. */
export const STATUS_NOT_KEPT: System = tasksWithout(() => ({ told: null }));

/** The first end stays as safe as it was. */
export const FIRST_NOT_MADE_SAFE: System = {
  ...REAL,
  admission: [
    (rows, request, now) => {
      const updateRecord = (row: RecordRow): void => {
        const { acked = row.acked } = rows.record(row.sender, row.key, now) ?? {};
        rows.updateRecord(row.key === request.event?.key ? row : { ...row, acked });
      };
      return accept({ ...rows, updateRecord }, request, now);
    },
  ],
};

/** An observation of an end that is known is dropped, whether the first one is safe or not. */
export const DROPPED_WHILE_UNSAFE: System = {
  ...REAL,
  admission: [
    (rows, request, now) => {
      const claim = request.event?.task;
      const isObserved = claim?.terminal && claim.told && claim.told.source !== 'webhook';
      return isObserved && rows.task(request.sender, claim.id, now)?.terminal
        ? { kind: 'done', state: 'stale', changed: false, died: false }
        : accept(rows, request, now);
    },
  ],
};

/** Which operation a task is of is not told. */
export const OPERATION_NOT_TOLD: System = claimsWithout(({ told, ...claim }) => {
  if (!told) return claim;
  const { operation: _none, ...rest } = told;
  return { ...claim, told: rest };
});

/** When it was asked for is not told. */
export const TIME_OF_QUESTION_NOT_TOLD: System = claimsWithout(({ told, ...claim }) => {
  if (!told) return claim;
  const { askedAt: _none, ...rest } = told;
  return { ...claim, told: rest };
});

/** A duplicate that names task and operation leaves the one that knows of no end as it is. */
export const NOT_JOINED: System = {
  ...REAL,
  admission: [
    (rows, request, now) => {
      const tasks: TaskRow[] = [];
      const decision = accept({ ...rows, saveTask: (row) => void tasks.push(row) }, request, now);
      if (decision.kind !== 'done') for (const row of tasks) rows.saveTask(row);
      return decision;
    },
  ],
};

/** The first end stays the first, also where another one is applied and it never is. */
export const FIRST_STAYS: System = {
  ...REAL,
  complete: (rows, request, now) => {
    const saveTask = (row: TaskRow): void => {
      const before = rows.task(row.sender, row.id, now)?.terminal;
      rows.saveTask(before && before.key !== row.terminal?.key ? { ...row, terminal: before } : row);
    };
    return complete({ ...rows, saveTask }, request, now);
  },
};

const asFirstTold = <R extends RecordRow | undefined>(row: R): R => {
  if (!row?.task?.told) return row;
  const { newest: _none, ...told } = row.task.told;
  return { ...row, task: { ...row.task, told } };
};

/** An end that two channels tell is ordered by the time of the first alone. */
export const AS_OLD_AS_THE_FIRST: System = over((rows) => ({
  record: (sender, key, now): ReturnType<QueueRows['record']> => asFirstTold(rows.record(sender, key, now)),
  due: (now) => asFirstTold(rows.due(now)),
}));
