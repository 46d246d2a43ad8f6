import { ConfigError } from '../../errors.ts';
import type {
  InboxPage,
  InboxQuery,
  InboxRecord,
  LeaseDueRequest,
  LeaseDueResult,
  StoreInbox,
} from '../contract.ts';
import { markMs } from './args.ts';
import type { Cursor } from './cursor.ts';
import { cursorOf, readCursor } from './cursor.ts';
import { inboxRecord, leaseResult, replyOf, textOf } from './replies.ts';
import type { Session, UseSession } from './session.ts';

/** Longest page. */
const PAGE_MOST = 1000;

/** Senders asked at the same time. */
const AT_ONCE = 64;

/** Turns of one lease call: what was looked at and could not run makes room for more. */
const TURNS = 4;

/** Runs `ask` for every sender, some at a time. */
async function forEach<T>(senders: readonly string[], ask: (sender: string) => Promise<T>): Promise<T[]> {
  const out: T[] = [];
  for (let at = 0; at < senders.length; at += AT_ONCE) {
    out.push(...(await Promise.all(senders.slice(at, at + AT_ONCE).map(ask))));
  }
  return out;
}

/** `StoreInbox` over what `use` gives. */
export function inboxOf(use: UseSession): StoreInbox {
  return {
    lease: (request) => use((session) => leaseDue(session, request)),
    list: (query) => use((session) => list(session, query)),
    inspect: (sender, key) =>
      use(async ({ run }) => {
        const reply = await run('inspect', sender, { key });
        return Array.isArray(reply) ? inboxRecord(sender, replyOf(reply)) : undefined;
      }),
    redrive: (sender, key) =>
      use(async ({ run }) => textOf(await run('redrive', sender, { key })) as 'queued' | 'absent' | 'other'),
    discard: (sender, key, retentionMs) =>
      use(async ({ run }) => {
        const answer = textOf(await run('discard', sender, { key, retentionMs }));
        return answer as 'discarded' | 'absent' | 'other';
      }),
  };
}

interface Work {
  readonly events: LeaseDueResult['events'][number][];
  readonly died: LeaseDueResult['died'][number][];
  /** Ms until each sender's next event is due, where one is known. */
  readonly next: Map<string, number>;
}

/**
 * Senders are in different slots, so no script sees them all: first each is asked when its events come due, then the
 * oldest of all are leased, sender by sender.
 */
async function leaseDue(session: Session, request: LeaseDueRequest): Promise<LeaseDueResult> {
  const senders = [...new Set([...request.senders, ...(await session.registry.senders())])];
  const work: Work = { events: [], died: [], next: new Map() };
  for (let turn = 0; turn < TURNS && work.events.length < request.max; turn += 1) {
    const quotas = await shares(session, senders, request.max - work.events.length, work);
    if (quotas.size === 0) break;
    await forEach([...quotas.keys()], async (sender) => {
      addTo(work, sender, await leaseOf(session, sender, { ...request, max: quotas.get(sender) ?? 0 }));
    });
  }
  const next = Math.min(...work.next.values());
  return { events: work.events, died: work.died, ...(next < Infinity && { nextDueMs: next }) };
}

/** How many of the `max` oldest due events are whose. */
async function shares(
  session: Session,
  senders: readonly string[],
  max: number,
  { next }: Work,
): Promise<ReadonlyMap<string, number>> {
  const due: { readonly sender: string; readonly inMs: number }[] = [];
  await forEach(senders, async (sender) => {
    const [first, ...rest] = ((await session.read('due', sender, { max })) as unknown[]).map(Number);
    if (first === undefined) next.delete(sender);
    else next.set(sender, Math.max(0, first));
    for (const inMs of [first, ...rest]) if (inMs !== undefined && inMs <= 0) due.push({ sender, inMs });
  });
  due.sort((a, b) => a.inMs - b.inMs);
  const quotas = new Map<string, number>();
  for (const { sender } of due.slice(0, max)) quotas.set(sender, (quotas.get(sender) ?? 0) + 1);
  return quotas;
}

async function leaseOf(
  session: Session,
  sender: string,
  { owner, max, leaseMs, retry, retentionMs }: LeaseDueRequest,
): Promise<LeaseDueResult> {
  const call = session.newId();
  const values = { call, owner, max, leaseMs, retentionMs, markMs: markMs(retentionMs), ...retry };
  return leaseResult(sender, replyOf(await session.run('lease', sender, values)));
}

function addTo(work: Work, sender: string, { events, died, nextDueMs }: LeaseDueResult): void {
  work.events.push(...events);
  work.died.push(...died);
  if (nextDueMs === undefined) work.next.delete(sender);
  else work.next.set(sender, nextDueMs);
}

const LISTS: Record<InboxQuery['state'], string> = { queued: ':q', leased: ':l', dead: ':k' };

interface Placed {
  readonly place: string;
  readonly record: InboxRecord;
}

/** Merges the senders' lists: by place (instant of insertion), then sender, then key. */
async function list(session: Session, query: InboxQuery): Promise<InboxPage> {
  const limit = Math.min(Math.max(1, Math.floor(query.limit)), PAGE_MOST);
  const after = readCursor(query.after);
  if (after === null) throw new ConfigError('inbox.list: after is not the next of a page before.');
  const senders = query.sender === undefined ? await session.registry.senders() : [query.sender];
  const found = await forEach(senders, async (sender) => pageOf(session, sender, query, { after, limit }));
  const all = found.flat().sort(byPlace);
  const page = all.slice(0, limit);
  const last = page.at(-1);
  const next = last && all.length > limit ? cursorOf({ place: last.place, ...last.record }) : undefined;
  return { records: page.map(({ record }) => record), ...(next !== undefined && { next }) };
}

function byPlace(a: Placed, b: Placed): number {
  const by = Number(a.place) - Number(b.place);
  if (by !== 0 || a.record.sender === b.record.sender) return by;
  return a.record.sender < b.record.sender ? -1 : 1;
}

async function pageOf(
  session: Session,
  sender: string,
  { state }: InboxQuery,
  { after, limit }: { readonly after: Cursor | undefined; readonly limit: number },
): Promise<Placed[]> {
  const reply = (await session.read('list', sender, {
    list: LISTS[state],
    // One more, to know whether there is another page.
    limit: limit + 1,
    from: after?.place ?? '0',
    all: after === undefined || sender > after.sender,
    behind: after && sender === after.sender ? after.key : undefined,
  })) as unknown[];
  return reply.map((entry) => {
    const fields = replyOf(entry);
    return { place: fields.text('place'), record: inboxRecord(sender, fields) };
  });
}
