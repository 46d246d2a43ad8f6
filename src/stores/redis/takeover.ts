import type { Unit } from '../backend.ts';
import { newEntry } from '../driver/journal.ts';
import { nameOf } from '../driver/row-data.ts';
import { writeOf } from '../driver/unit.ts';
import { versions } from '../driver/versions.ts';
import { commitRows } from './commit.ts';
import type { PlacedWrite } from './rows.ts';
import { textOf } from './rows.ts';
import type { Session } from './session.ts';
import type { OldRow } from './version-1.ts';
import { RENEW } from './version-1.ts';

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
