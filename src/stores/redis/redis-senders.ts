// Operations over all senders: pages of records, counts, deletion of expired rows (admission.md §8.14, §9.5).
// Called by redis-backend.ts and redis-session.ts. Senders are in different slots, so each needs a script of its own.
import type { ListCount, NoncesOf, Page, Row, Scope } from '../backend.ts';
import type { InboxQuery } from '../store.ts';
import { listName, rowOf, textOf } from './redis-rows.ts';
import type { Session } from './sender-list.ts';

/** The largest number of senders that are queried at the same time. */
const AT_ONCE = 64;

/** Runs `ask` for every sender, or group of senders, for at most `AT_ONCE` at the same time. */
export async function forEach<S, T>(senders: readonly S[], ask: (sender: S) => Promise<T>): Promise<T[]> {
  const out: T[] = [];
  for (let at = 0; at < senders.length; at += AT_ONCE) {
    out.push(...(await Promise.all(senders.slice(at, at + AT_ONCE).map(ask))));
  }
  return out;
}

interface Placed {
  readonly place: number;
  readonly row: Row;
}

/** Returns a page of records, for `Backend.page`. */
export async function page(session: Session, query: InboxQuery): Promise<Page> {
  const { state, sender, limit, after = '0' } = query;
  const senders = sender === undefined ? await session.registry.senders() : [sender];
  const found = await forEach(senders, async (of) => {
    const asked = { list: listName(state), behind: after, limit: limit + 1 };
    return placedRows(of, (await session.read('page', of, asked)) as unknown[]);
  });
  const all = found.flat().toSorted((a, b) => a.place - b.place);
  const end = endOf(all, limit);
  const last = all[end - 1];
  const rows = all.slice(0, end).map(({ row }) => row);
  return { rows, ...(all.length > end && last && { next: String(last.place) }) };
}

/**
 * Counts records, for `Backend.listCounts`. The server's counts include expired rows. So the expired rows of each
 * sender that has records are deleted first.
 */
export async function listCounts(session: Session): Promise<readonly ListCount[]> {
  const counted = async (sender: string): Promise<readonly unknown[]> =>
    (await session.read('counted', sender, {})) as readonly unknown[];
  const found = await forEach(await session.registry.senders(), async (sender) => {
    if ((await counted(sender)).length === 0) return [];
    while ((await sweepSender(session, sender, OF_RECORDS)) === OF_RECORDS.most);
    return countsOf(sender, await counted(sender));
  });
  return found.flat();
}

function countsOf(sender: string, reply: readonly unknown[]): ListCount[] {
  const out: ListCount[] = [];
  for (let at = 0; at < reply.length; at += 4) {
    const [letter, count, name = '', text = ''] = reply.slice(at, at + 4).map(textOf);
    const list = letter === 'q' ? 'queued' : letter === 'l' ? 'leased' : 'dead';
    out.push({ list, count: Number(count), oldest: rowOf(sender, name, text) });
  }
  return out;
}

/**
 * Returns the number of rows on a page. The next page begins after the last row's time of insertion, which rows of two
 * senders can share. So a page has all rows with the same time, or none.
 */
function endOf(all: readonly Placed[], limit: number): number {
  let end = limit;
  while (end > 0 && all[end] && all[end]?.place === all[end - 1]?.place) end -= 1;
  if (end > 0) return end;
  return all.filter(({ place }) => place === all[0]?.place).length;
}

function placedRows(sender: string, reply: readonly unknown[]): Placed[] {
  const out: Placed[] = [];
  for (let at = 0; at < reply.length; at += 3) {
    const [place, name, text] = reply.slice(at, at + 3).map(textOf);
    out.push({ place: Number(place), row: rowOf(sender, name ?? '', text ?? '') });
  }
  return out;
}

/** Deletes expired rows, for `Backend.sweep`. */
export async function sweep(
  session: Session,
  of: Scope | NoncesOf | 'nonces',
  most: number,
): Promise<number> {
  if (of !== 'nonces' && 'noncesOf' in of) {
    return sweepSender(session, of.noncesOf, { most, keyid: '', nonces: true });
  }
  if (of !== 'nonces') return sweepSender(session, of.sender, { most, keyid: of.keyid ?? '', nonces: false });
  return session.sweepsOfAll(() => sweepAll(session, most));
}

async function sweepAll(
  session: Session,
  most: number,
): Promise<{ readonly gone: number; readonly senders: number }> {
  const senders = await session.registry.senders();
  let gone = 0;
  // All senders are swept, even after `most` rows were deleted, because a sweep also counts the sender's nonces.
  for (let at = 0; at < senders.length; at += AT_ONCE) {
    const some = senders.slice(at, at + AT_ONCE);
    const left = Math.max(0, most - gone);
    const each = { most: Math.ceil(left / some.length), keyid: '', nonces: true };
    for (const count of await forEach(some, (sender) => sweepSender(session, sender, each))) gone += count;
  }
  return { gone, senders: senders.length };
}

interface Sweep {
  readonly most: number;
  /** The key id whose expired nonces are deleted; '': none. */
  readonly keyid: string;
  /** True to delete the expired nonces of all the sender's key ids. */
  readonly nonces: boolean;
}

const OF_RECORDS: Sweep = { most: 1024, keyid: '', nonces: false };

async function sweepSender(session: Session, sender: string, asked: Sweep): Promise<number> {
  const [gone, nonces] = (await session.read('sweep', sender, asked)) as [number, number];
  session.counts.seen(sender, nonces);
  return gone;
}

/** The largest number of rows, and of nonces, of one sender that one call deletes. */
const SILENT_MOST = 1024;

/**
 * Makes a function that deletes expired rows of one sender; each call continues with the next sender. So rows of
 * senders that no longer send are deleted too, whichever process stored them.
 */
export function silentSweeper(session: () => Session): () => Promise<void> {
  let turn = 0;
  return async () => {
    const senders = await session().registry.senders();
    const sender = senders[(turn += 1) % senders.length];
    if (sender === undefined) return;
    for (const nonces of [false, true]) {
      await sweepSender(session(), sender, { most: SILENT_MOST, keyid: '', nonces });
    }
  };
}
