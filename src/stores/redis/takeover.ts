import type { RowId, Scope, Unit } from '../port.ts';
import { newEntry } from '../driver/journal.ts';
import { type AnyRow, fitted, nameOf } from '../driver/row-data.ts';
import { versions } from '../driver/store-of.ts';
import { writeOf } from '../driver/unit.ts';
import { finalId } from '../rules/reports.ts';
import type { RecordRow } from '../rules/rows.ts';
import { fromColumnText } from '../text.ts';
import { commitRows } from './commit.ts';
import { type PlacedWrite, textOf } from './rows.ts';
import type { Session } from './registry.ts';

/** Rows of schema version 1, as `lua/takeover.lua` reads them; texts are `columnText`, what is absent or false is left out. */
interface Old {
  readonly sender: string;
  readonly kind: string;
  readonly id: string;
  readonly keyid: string;
  readonly row: OldRow;
}

type OldRow = Readonly<Record<string, string | number | boolean | undefined>> & {
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

interface Renewed {
  readonly id: RowId;
  readonly row: AnyRow;
}

/** By the first letter of a row's name in version 1. */
const RENEW: Readonly<Record<string, (old: Old) => Renewed>> = {
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

/** One of `lua/takeover.lua`. */
type Found = readonly [
  index: unknown,
  member: unknown,
  row: Buffer,
  place: unknown,
  body: Buffer,
  keyid: unknown,
  ...keys: unknown[],
];

interface Move {
  readonly sender: string;
  readonly kinds: string;
  /** Unix ms on the store's clock. */
  readonly now: number;
  readonly nextVersion: () => number;
}

/** undefined: it is not there any more, or is over. */
function unitOf({ sender, kinds, now, nextVersion }: Move, found: Found): Unit | undefined {
  const [, member, json, place, body, keyid] = found;
  if (json.length === 0) return undefined;
  const name = textOf(member);
  const kind = kinds === 'o' ? kinds : name.slice(0, 1);
  const row = JSON.parse(textOf(json)) as OldRow;
  const renewed = RENEW[kind]?.({
    sender,
    kind,
    id: kinds === 'o' ? name : name.slice(1),
    keyid: textOf(keyid),
    row,
  });
  if (!renewed || (renewed.row.expiresAt !== null && renewed.row.expiresAt <= now)) return undefined;
  const isKept = 'bodyBytes' in renewed.row && renewed.row.bodyBytes > 0;
  const entry = {
    ...newEntry(renewed.id, nameOf(renewed.id), undefined, undefined, true),
    row: renewed.row,
    body: isKept ? body : null,
  };
  const write: PlacedWrite = {
    ...writeOf(entry, nextVersion()),
    place: Math.round(Number(textOf(place)) * 1000),
  };
  return { expects: [], writes: [write], counts: [] };
}

/**
 * Moves a sender's rows of schema version 1 (`lua/takeover.lua`), some with each script: Redis does nothing else meanwhile.
 * Of several processes at it at once, and of one that died in the middle, each goes on with what is left.
 */
export async function takeOver(session: Session, sender: string): Promise<void> {
  // First the records: an older process may still end one that is there, and raise the mark of its task.
  let moved = await move(session, sender, 'r');
  // What another process moves meanwhile makes this one pass over others.
  while (moved !== undefined && moved > 0) moved = await move(session, sender, 'r');
  if (moved === undefined) return;
  await move(session, sender, 'rtnf');
  await move(session, sender, 'o');
}

/** @returns how many rows; undefined where nothing is left of any kind. */
async function move(session: Session, sender: string, kinds: string): Promise<number | undefined> {
  const nextVersion = versions();
  let done: readonly string[][] = [];
  for (let from = 0, moved = 0; ;) {
    const reply = await session.run('takeover', sender, { from, kinds, done });
    const [now, found, passed, isLeft] = reply as [number, Found[], number, number];
    if (isLeft === 0) return undefined;
    if (found.length === 0 && passed === 0) return moved;
    const units = found.flatMap((one) => unitOf({ sender, kinds, now, nextVersion }, one) ?? []);
    // A row that is there already was moved by another process.
    const { isOld } = await commitRows(session, sender, { at: now, units, counts: [] });
    done = isOld ? [] : found.map(([index, member, , , , , ...keys]) => [index, member, ...keys].map(textOf));
    from += passed;
    moved += found.length;
  }
}

/** All senders of version 1. */
export async function takeOverAll(session: Session): Promise<void> {
  let done: readonly string[] = [];
  for (;;) {
    const senders = await session.registry.oldSenders(done);
    if (senders.length === 0) return;
    for (const sender of senders) await takeOver(session, sender);
    done = senders;
  }
}
