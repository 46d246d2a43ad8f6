// `Backend.commit` on Redis: converts the units (groups of row changes) to arguments of one script, and reads its reply
// (admission.md §8.3, §9.5).
// Called by redis-backend.ts; the script is `lua/commit.lua`.
import type { CommitRequest, CommitResult, Expected, LoadResult, Scope, Unit, Write } from '../backend.ts';
import { PROCESSES } from '../optimistic/row-data.ts';
import { changesOf, indexOf, listName, rowName, rowText, seenOf, ttlOf, versionText } from './redis-rows.ts';
import type { Session } from './sender-list.ts';

/** The script gets these values in place of a body's length: `stays` keeps the stored body, `dropped` deletes it. */
const BODY = { stays: -1, dropped: -2 } as const;

interface Asked {
  readonly names: string[];
  readonly versions: string[];
  readonly units: (readonly [rows: number, writes: number])[];
  readonly writes: (readonly unknown[])[];
  readonly rows: string[];
  readonly bodies: Uint8Array[];
}

/**
 * Commits units (groups of row changes) by one script. Before its first commit for a sender, this process registers the
 * sender.
 */
export async function commit(session: Session, request: CommitRequest): Promise<CommitResult> {
  const sender = senderOf(request);
  // The rows of processes belong to no sender. Workers never search them, so nothing has to be registered.
  const registering = sender === PROCESSES.sender ? undefined : session.registry.register(sender);
  if (registering) await registering;
  const asked: Asked = { names: [], versions: [], units: [], writes: [], rows: [], bodies: [] };
  const offsetMs = session.offsetMs();
  for (const unit of request.units) addUnit(asked, unit, offsetMs);
  const { rows, bodies, ...lists } = asked;
  const keyids = session.keyids.toNote(request.units);
  const told = { at: request.at, ...lists, keyids, counts: request.counts.map(indexOf) };
  // The rows are joined into one argument, because a client needs as much time for a short argument as for a long one.
  const args = [rows.join(''), ...(bodies.length > 0 ? [Buffer.concat(bodies)] : [])];
  const { rest, ...seen } = seenOf(sender, request.counts, await session.run('commit', sender, told, args));
  session.keyids.noted(sender, keyids);
  session.registry.tick();
  return { ...withAllNonces(session, sender, seen), refused: rest[0] as readonly number[] };
}

/** Replaces the number of the sender's nonces, which a script returned, by the known number of all senders' nonces. */
export function withAllNonces<Told extends LoadResult>(session: Session, sender: string, told: Told): Told {
  return told.nonces === undefined ? told : { ...told, nonces: session.counts.seen(sender, told.nonces) };
}

/**
 * Returns the sender of a commit. All its units have the same sender. A unit without rows has none; then the sender of
 * `counts` is used.
 */
function senderOf({ units, counts }: CommitRequest): string {
  const [unit] = units;
  const scope: Scope | undefined = unit?.writes[0]?.scope ?? unit?.expects[0]?.scope ?? counts[0];
  return scope?.sender ?? '';
}

function addUnit(asked: Asked, { writes, expects }: Unit, offsetMs: number): void {
  for (const write of writes) {
    addRow(asked, write);
    addWrite(asked, write, offsetMs);
  }
  for (const row of expects) addRow(asked, row);
  asked.units.push([writes.length + expects.length, writes.length]);
}

function addRow({ names, versions }: Asked, row: Expected): void {
  names.push(rowName(row));
  versions.push(versionText(row.version));
}

function addWrite({ writes, rows, bodies }: Asked, write: Write, offsetMs: number): void {
  const { body, bytes, bytesBefore, before } = write;
  const list = listName(before?.list ?? null);
  const row = rowText(write);
  rows.push(row);
  if (body) bodies.push(body);
  const kept = body ? body.length : body === null && bytesBefore > 0 ? BODY.dropped : BODY.stays;
  const ttl = ttlOf(write, offsetMs);
  const change = [list, bytes - bytesBefore, ttl, Buffer.byteLength(row), kept];
  writes.push([...change, ...changesOf(write)]);
}
