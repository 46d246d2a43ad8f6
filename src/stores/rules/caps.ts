import type { AcceptRequest, Pressure, StoreLimits } from '../contract.ts';
import { PRESSURE_SHARE } from '../contract.ts';
import type { Rows, Usage } from './rows.ts';
import { PRESSURE_USAGE } from './rows.ts';
import type { Step } from './step.ts';

/** One refusal pays for at most so many deletions: a cap that was lowered by much is reached over several calls. */
const PURGE_MOST = 4096;

/** Bodies differ in size, so bytes are freed by so many rows at a time. */
const PURGE_BYTES_STEP = 256;

/** Rows purged at most before an alarm is raised for a limit that seems near. */
const RELIEF_STEP = 1024;

function excess(used: number, max: number): number {
  return Math.min(used - max + 1, PURGE_MOST);
}

/**
 * A sender's fair share of all nonces is so many times what is left of them (admission.md §6.7): one alone comes to 8/9,
 * two to 8/17 each, and always there is room for another. No sender need be counted for it.
 */
const FAIR_SHARE = 8;

/**
 * Whether one more nonce would exceed a cap (verification.md §2.9a). What has expired never counts:
 * it is purged before the answer is no.
 */
export function noncesFull({ rows, request, now, used }: Step, keyid: string): boolean {
  const { sender, limits } = request;
  const { maxNoncesPerKey, maxNoncesPerSender = Infinity, maxNonces } = limits;
  const isOver = ({ senderNonces, allNonces }: Usage): boolean =>
    allNonces >= maxNonces || senderNonces > FAIR_SHARE * (maxNonces - allNonces);
  const isFull = (now: Usage): boolean =>
    now.nonces >= maxNoncesPerKey || now.senderNonces >= maxNoncesPerSender || isOver(now);
  if (!isFull(used)) return false;
  if (used.nonces >= maxNoncesPerKey) {
    rows.purgeNonces(now, excess(used.nonces, maxNoncesPerKey), { sender, keyid });
  }
  if (used.senderNonces >= maxNoncesPerSender) {
    rows.purgeNonces(now, excess(used.senderNonces, maxNoncesPerSender), { sender });
  }
  if (isOver(used)) {
    rows.purgeNonces(now, RELIEF_STEP, { sender });
    rows.purgeNonces(now, Math.max(RELIEF_STEP, excess(used.allNonces, maxNonces)));
  }
  return isFull(rows.usage(sender, keyid));
}

/** Whether the sender has no room for one more record (contract.md §9.6). */
export function entriesFull({ rows, request, now, used }: Step): boolean {
  const max = request.limits.maxRecordsPerSender;
  if (used.entries < max) return false;
  rows.purgeSender(request.sender, now, excess(used.entries, max));
  return rows.usage(request.sender, undefined).entries >= max;
}

/** Whether the sender has no room for `bytes` more of unfinished bodies. */
export function bytesFull({ rows, request, now, used }: Step, bytes: number): boolean {
  const room = request.limits.maxPendingBytesPerSender - bytes;
  let left = used;
  for (let purged = 0; purged < PURGE_MOST && left.pendingBytes > room; purged += PURGE_BYTES_STEP) {
    const before = left.entries;
    rows.purgeSender(request.sender, now, PURGE_BYTES_STEP);
    left = rows.usage(request.sender, undefined);
    if (left.entries === before) return true;
  }
  return left.pendingBytes > room;
}

const PRESSURE_LIMIT: Record<Pressure, keyof StoreLimits> = {
  records: 'maxRecordsPerSender',
  'pending-bytes': 'maxPendingBytesPerSender',
  nonces: 'maxNoncesPerKey',
  'sender-nonces': 'maxNoncesPerSender',
  'all-nonces': 'maxNonces',
};

/** What may have expired where a limit seems near. */
const RELIEF: Record<Pressure, (rows: Rows, request: AcceptRequest, now: number) => void> = {
  records: (rows, request, now) => rows.purgeSender(request.sender, now, RELIEF_STEP),
  'pending-bytes': (rows, request, now) => rows.purgeSender(request.sender, now, RELIEF_STEP),
  nonces: (rows, { sender, nonce }, now) => {
    if (nonce) rows.purgeNonces(now, RELIEF_STEP, { sender, keyid: nonce.keyid });
  },
  'sender-nonces': (rows, { sender }, now) => rows.purgeNonces(now, RELIEF_STEP, { sender }),
  'all-nonces': (rows, _request, now) => rows.purgeNonces(now, RELIEF_STEP),
};

const WITHOUT_NONCE: readonly Pressure[] = ['records', 'pending-bytes'];
const WITH_NONCE: readonly Pressure[] = [...WITHOUT_NONCE, 'nonces', 'sender-nonces', 'all-nonces'];

/** The limits that are used to 80 % or more, for the owner's alarm; what has expired is purged first. */
export function pressure(rows: Rows, request: AcceptRequest, now: number): readonly Pressure[] {
  const names = request.nonce ? WITH_NONCE : WITHOUT_NONCE;
  const near = nearLimits(rows, request, names);
  if (near.length === 0) return near;
  for (const name of near) RELIEF[name](rows, request, now);
  return nearLimits(rows, request, near);
}

const NONE: readonly Pressure[] = [];

/** Of nearly every accept: by names, which is faster than the tables. */
function isFar(used: Usage, limits: StoreLimits): boolean {
  const { entries, pendingBytes, nonces, senderNonces, allNonces } = used;
  const { maxNoncesPerSender = Infinity } = limits;
  return (
    entries < limits.maxRecordsPerSender * PRESSURE_SHARE &&
    pendingBytes < limits.maxPendingBytesPerSender * PRESSURE_SHARE &&
    nonces < limits.maxNoncesPerKey * PRESSURE_SHARE &&
    senderNonces < maxNoncesPerSender * PRESSURE_SHARE &&
    allNonces < limits.maxNonces * PRESSURE_SHARE
  );
}

function nearLimits(rows: Rows, request: AcceptRequest, names: readonly Pressure[]): readonly Pressure[] {
  const used = rows.usage(request.sender, request.nonce?.keyid);
  if (isFar(used, request.limits)) return NONE;
  let near = NONE;
  for (const name of names) {
    const most = (request.limits[PRESSURE_LIMIT[name]] ?? Infinity) * PRESSURE_SHARE;
    if (used[PRESSURE_USAGE[name]] >= most) near = [...near, name];
  }
  return near;
}
