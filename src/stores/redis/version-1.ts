import type { RowId, Scope } from '../backend.ts';
import type { AnyRow } from '../driver/row-data.ts';
import { fitted } from '../driver/row-data.ts';
import { finalId } from '../rules/reports.ts';
import type { RecordRow } from '../rules/rows.ts';
import { fromColumnText } from '../text.ts';

/** Rows of schema version 1, as `lua/takeover.lua` reads them; texts are `columnText`, what is absent or false is left out. */
export interface Old {
  readonly sender: string;
  readonly kind: string;
  readonly id: string;
  readonly keyid: string;
  readonly row: OldRow;
}

export type OldRow = Readonly<Record<string, string | number | boolean | undefined>> & {
  readonly state?: RecordRow['state'];
  readonly claim?: RecordRow['claim'];
};

const text = (value: OldRow[string]): string | null =>
  value === undefined ? null : fromColumnText(String(value));
const number = (value: OldRow[string]): number => Number(value ?? 0);

function recordOf({ sender, id, row }: Old): RecordRow {
  const task = row.taskId === undefined ? null : text(row.taskId);
  return {
    sender,
    key: fromColumnText(id),
    state: row.state ?? 'queued',
    claim: row.claim ?? 'waiting',
    claimedBy: text(row.claimedBy) ?? '',
    owner: text(row.owner),
    fence: number(row.fence),
    leaseUntil: number(row.leaseUntil),
    attempts: number(row.attempts),
    crashes: number(row.crashes),
    suspect: false,
    process: null,
    crashedIn: null,
    acked: row.acked === true,
    insertedAt: number(row.insertedAt),
    notBefore: number(row.notBefore),
    parkedUntil: number(row.parkedUntil),
    setAt: number(row.insertedAt),
    spared: false,
    lastError: text(row.lastError),
    rawHash: String(row.rawHash),
    canonicalHash: row.canonicalHash === undefined ? null : String(row.canonicalHash),
    task:
      task === null
        ? null
        : {
            id: task,
            ...(row.instant !== undefined && { instant: String(row.instant) }),
            ...(row.instantMs !== undefined && { instantMs: number(row.instantMs) }),
            terminal: row.terminal === true,
          },
    reemission: row.reemission === true,
    afterTerminal: row.afterTerminal === true,
    ahead: row.ahead === true,
    afterFinal: row.afterFinal === true,
    bodyBytes: number(row.bodyBytes),
    expiresAt: row.expiresAt === undefined ? null : number(row.expiresAt),
  };
}

const notification =
  (idOf: (id: string) => string): ((old: Old) => Renewed) =>
  ({ sender, id, row }) => {
    const name = idOf(fromColumnText(id));
    const marked = {
      sender,
      id: name,
      key: text(row.key) ?? '',
      instant: null,
      expiresAt: number(row.expiresAt),
    };
    return { id: { scope: { sender }, kind: 'notification', id: fitted(name) }, row: marked };
  };

export interface Renewed {
  readonly id: RowId;
  readonly row: AnyRow;
}

/** By the first letter of a row's name in version 1. */
export const RENEW: Readonly<Record<string, (old: Old) => Renewed>> = {
  r: (old) => {
    const row = recordOf(old);
    return { id: { scope: { sender: old.sender }, kind: 'record', id: fitted(row.key) }, row };
  },
  t: ({ sender, id, row }) => {
    const name = fromColumnText(id);
    const task = {
      sender,
      id: name,
      holder: text(row.holder),
      mark: row.mark === undefined ? null : String(row.mark),
      markTerminal: row.markTerminal === true,
      terminal: null,
      // The first that looks and finds none says so.
      waiting: true,
      expiresAt: number(row.expiresAt),
    };
    return { id: { scope: { sender }, kind: 'task', id: fitted(name) }, row: task };
  },
  n: notification((id) => id),
  f: notification(finalId),
  o: ({ sender, id, keyid, row }) => {
    const of = { sender, keyid: fromColumnText(keyid), nonce: fromColumnText(id) };
    const scope: Scope = { sender, keyid: fitted(of.keyid) };
    const burned = {
      key: text(row.key),
      acceptId: text(row.acceptId) ?? '',
      expiresAt: number(row.expiresAt),
    };
    return { id: { scope, kind: 'nonce', id: fitted(of.nonce) }, row: { ...of, ...burned } };
  },
};
