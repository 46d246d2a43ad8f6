import type { AcceptRequest, TaskClaim } from '../../../src/stores/contract.ts';
import { accept } from '../../../src/stores/rules/accept.ts';
import type { QueueRows, RecordRow, TaskRow } from '../../../src/stores/rules/rows.ts';
import { complete } from '../../../src/stores/rules/settle.ts';
import { over } from './broken.ts';
import type { System } from './system.ts';
import { REAL } from './system.ts';

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
