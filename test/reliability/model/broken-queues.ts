import type { RecordRow } from '../../../src/stores/for-tests.ts';
import type { System } from './system.ts';
import { REAL, leaseDue } from './system.ts';

/** Looks whether the event is known, runs the handler, writes it down. */
export const GET_RUN_SET: System = {
  ...REAL,
  admission: [
    (rows, { sender, event, acceptId: owner }, now) =>
      rows.record(sender, event?.key ?? '', now)
        ? { kind: 'done', state: 'applied', died: false, changed: false }
        : { ...WON, lease: { owner, run: 1, chargedAttempts: 1 } },
  ],
  complete: (rows, { sender, key, owner }) => {
    rows.insertRecord({ ...APPLIED, sender, key, owner });
    return 'done';
  },
};

const WON = {
  kind: 'won',
  changed: false,
  reemission: false,
  afterTerminal: false,
  afterFinal: false,
  ahead: false,
} as const;

const APPLIED: RecordRow = {
  sender: '',
  key: '',
  state: 'applied',
  claim: 'won',
  claimedBy: '',
  owner: '',
  runs: 1,
  leaseUntil: 0,
  attempts: 1,
  crashes: 0,
  suspect: false,
  process: null,
  crashedIn: null,
  acked: true,
  insertedAt: 0,
  notBefore: 0,
  parkedUntil: 0,
  lastError: null,
  rawHash: '0',
  canonicalHash: null,
  task: null,
  reemission: false,
  afterTerminal: false,
  ahead: false,
  afterFinal: false,
  windows: null,
  claimedState: null,
  bodyBytes: 0,
  expiresAt: null,
};

/** A queue that forgets what it hands out. */
export const POP_THEN_RUN: System = {
  ...REAL,
  lease: (rows, request, now) => {
    const result = leaseDue(rows, request, now);
    for (const { sender, key } of result.events) {
      const record = rows.record(sender, key, now);
      if (record) rows.updateRecord({ ...record, state: 'applied', bodyBytes: 0 });
    }
    return result;
  },
};
