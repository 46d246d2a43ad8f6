import {
  accept,
  complete,
  fail,
  LONGEST_LEASE_MS,
  type QueueRows,
  type RecordRow,
  renew,
} from '../../../src/stores/for-tests.ts';
import type { Atomic, System } from './system.ts';
import { REAL, consequence } from './system.ts';

type Owned = { readonly sender: string; readonly key: string; readonly owner: string };

/** Every caller passes for the owner of the lease. */
function byAnyone<Request extends Owned, Result>(rule: Atomic<Request, Result>): Atomic<Request, Result> {
  return (rows, request, now) => {
    const owner = rows.record(request.sender, request.key, now)?.owner;
    return rule(rows, { ...request, owner: owner ?? request.owner }, now);
  };
}

/** The same rules over rows that are not what they should be. */
export function over(change: (rows: QueueRows) => Partial<QueueRows>): System {
  const changed = <Request, Result>(rule: Atomic<Request, Result>): Atomic<Request, Result> => {
    return (rows, request, now) => rule({ ...rows, ...change(rows) }, request, now);
  };
  const { admission, complete, fail, renew, peek, lease, transaction, ...rest } = REAL;
  return {
    ...rest,
    admission: admission.map(changed),
    complete: changed(complete),
    fail: changed(fail),
    renew: changed(renew),
    peek: changed(peek),
    lease: changed(lease),
    transaction: changed(transaction),
  };
}

/** Two operations: the nonce, then the event. */
export const BURNED_BEFORE_THE_CLAIM: System = {
  ...REAL,
  admission: [
    (rows, { nonce, sender, event, acceptId }, now) => {
      if (!nonce) return undefined;
      const known = rows.nonce({ sender, ...nonce }, now);
      if (known && known.acceptId !== acceptId) return { kind: 'replayed' };
      rows.saveNonce({ ...nonce, sender, key: event?.key ?? null, acceptId, expiresAt: nonce.expiresAtMs });
      return undefined;
    },
    (rows, { nonce: _burned, ...request }, now) => accept(rows, request, now),
  ],
};

/** A duplicate is answered 2xx while its first copy is still running. */
export const ACKNOWLEDGED_IN_FLIGHT: System = {
  ...REAL,
  consequence: (decision, mode) => (decision.kind === 'in-flight' ? 200 : consequence(decision, mode)),
};

/** Who gives a lease back or prolongs it is not looked at. */
export const LEASE_WITHOUT_OWNER: System = { ...REAL, fail: byAnyone(fail), renew: byAnyone(renew) };

/** A lease that ends later than one can, which a clock that was set back has left, is over. */
export const FAR_LEASE_IS_OVER: System = over((rows) => ({
  record: (sender, key, now) => {
    const record = rows.record(sender, key, now);
    const isFar = record?.state === 'leased' && record.leaseUntil > now + LONGEST_LEASE_MS;
    return isFar ? { ...record, leaseUntil: now } : record;
  },
  due: (now) => {
    const record = rows.due(now);
    return record && { ...record, leaseUntil: Math.min(record.leaseUntil, now) };
  },
}));

/** Who completes is not looked at. */
export const COMPLETION_WITHOUT_OWNER: System = { ...REAL, complete: byAnyone(complete) };

/** JavaScript cannot stop a handler, but its lease is given back at its deadline. */
export const RELEASED_AT_THE_DEADLINE: System = { ...REAL, releasesAtDeadline: true };

/** A worker asks for a suspect beside what its process's deliveries run, and beside the suspect that one of them has asked for. */
export const PLACE_OF_ITS_OWN: System = { ...REAL, sharesPlace: false };

/** An accept that has leased a suspect and was not told so gives the place for it up, and is sent again. */
export const PLACE_GIVEN_UP: System = { ...REAL, keepsPlace: false };

/** 2xx first, the store after it. */
export const ACKNOWLEDGED_BEFORE_INSERT: System = { ...REAL, answersFirst: true };

/** A nonce that was seen is `replayed`, whether its event is safe or not. */
export const REPLAYED_UNLESS_NEW: System = {
  ...REAL,
  admission: [
    (rows, request, now) => {
      const known = request.nonce && rows.nonce({ sender: request.sender, ...request.nonce }, now);
      return known && known.acceptId !== request.acceptId ? { kind: 'replayed' } : accept(rows, request, now);
    },
  ],
};

/** Bytes that come again are taken for a retry of the seller's, as fresh as any. */
export const REPLAYS_COUNT: System = {
  ...REAL,
  admission: [
    (rows, request, now) => {
      const { nonce, sender } = request;
      const known = nonce && rows.nonce({ sender, ...nonce }, now);
      if (!known || known.acceptId === request.acceptId) return accept(rows, request, now);
      const record = rows.record(sender, request.event?.key ?? '', now);
      if (record?.acked !== false) return { kind: 'replayed' };
      const { nonce: _known, ...fresh } = request;
      return accept(rows, fresh, now);
    },
  ],
};

/** The inbox says that an event is safe which an inline door left unfinished, and leaves it so. */
export const SAID_SAFE_ONLY: System = {
  ...REAL,
  admission: [
    (rows, request, now) => {
      const key = request.event?.key ?? '';
      const before = rows.record(request.sender, key, now);
      const decision = accept(rows, request, now);
      const after = rows.record(request.sender, key, now);
      if (before && after && decision.kind === 'in-flight')
        rows.updateRecord({ ...after, acked: before.acked });
      return decision;
    },
  ],
};

/** Nobody holds a task. */
export const TASK_NOT_HELD: System = over((rows) => ({
  task: (sender, id, now) => {
    const row = rows.task(sender, id, now);
    return row && { ...row, holder: null };
  },
}));

/** A record that waits for its task is not told when it is free. */
export const PARKED_FOR_GOOD: System = over(() => ({ parked: () => undefined }));

/** The task's mark moves when a handler begins, not when it is done. */
export const MARKED_AT_THE_LEASE: System = {
  ...REAL,
  admission: [
    (rows, request, now) => {
      const decision = accept(rows, request, now);
      const claim = request.event?.task;
      const task = claim && rows.task(request.sender, claim.id, now);
      if (decision.kind === 'won' && task && claim.instant !== undefined) {
        rows.saveTask({ ...task, mark: claim.instant, markTerminal: claim.terminal });
      }
      return decision;
    },
  ],
};

/** A second terminal status is refused for good while the first may still be lost. */
export const FINAL_BEFORE_SAFE: System = {
  ...REAL,
  admission: [
    (rows, request, now) => {
      const decision = accept(rows, request, now);
      return decision.kind === 'final-unsafe' ? { kind: 'already-final' } : decision;
    },
  ],
};

/** Of events that were leased together each is charged with the crash. */
export const CHARGED_TOGETHER: System = over((rows) => {
  const suspected = (row: RecordRow | undefined): RecordRow | undefined =>
    row?.state === 'leased' ? { ...row, suspect: true } : row;
  return {
    record: (sender, key, now) => suspected(rows.record(sender, key, now)),
    due: (now) => suspected(rows.due(now)),
  };
});

/** Who completes is looked at, but not who has the task by now. */
export const LATE_FOR_THE_TASK: System = {
  ...REAL,
  complete: (rows, request, now) => {
    const task: QueueRows['task'] = (sender, id, at) => {
      const row = rows.task(sender, id, at);
      return row && { ...row, holder: request.key };
    };
    return complete({ ...rows, task }, request, now);
  },
};

/** The handler gets the copy that came now. */
export const LAST_COPY_HANDLED: System = {
  ...REAL,
  admission: [
    (rows, request, now) => {
      const decision = accept(rows, request, now);
      if (decision.kind !== 'won') return decision;
      const { body: _first, ...rest } = decision;
      return rest;
    },
  ],
};

/** The handler's writes commit without a look at the lease. */
export const TRANSACTION_WITHOUT_LEASE: System = {
  ...REAL,
  transaction: (rows, request, now) => {
    byAnyone(complete)(rows, request, now);
    return 'done';
  },
};

/** A lease can be had while another one is live. */
export const LEASE_NOT_EXCLUSIVE: System = over((rows) => ({
  record: (sender, key, now) => {
    const row = rows.record(sender, key, now);
    return row?.state === 'leased' ? { ...row, leaseUntil: now } : row;
  },
}));
