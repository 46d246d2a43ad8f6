// Names the limits that are nearly used up after an accept, so that the owner gets an alarm (admission.md §6.6, §8.9).
// Called at the end of every accept.
import { PRESSURE_SHARE } from '../constants.ts';
import type { AcceptRequest, Pressure, StoreLimits } from '../store.ts';
import { PRESSURE_USAGE, type Rows, type Usage } from './rule-rows.ts';

/** The number of expired rows that are deleted before a limit is reported as nearly used up. */
const RELIEF_STEP = 1024;

const PRESSURE_LIMIT: Record<Pressure, keyof StoreLimits> = {
  records: 'maxRecordsPerSender',
  'pending-bytes': 'maxPendingBytesPerSender',
  nonces: 'maxNoncesPerKey',
  'sender-nonces': 'maxNoncesPerSender',
  'all-nonces': 'maxNonces',
};

/**
 * Deletes expired rows that count towards a limit that seems nearly used up. Only the alarm depends on this deletion,
 * so with `'lately'` a deletion in the last 10 s is enough. Otherwise a sender near a cap would cost a deletion for
 * every accept.
 */
const RELIEF: Record<Pressure, (rows: Rows, request: AcceptRequest, now: number) => void> = {
  records: (rows, request, now) => rows.purgeSender(request.sender, now, RELIEF_STEP, 'lately'),
  'pending-bytes': (rows, request, now) => rows.purgeSender(request.sender, now, RELIEF_STEP, 'lately'),
  nonces: (rows, { sender, nonce }, now) => {
    if (nonce) rows.purgeNonces(now, RELIEF_STEP, { sender, keyid: nonce.keyid }, 'lately');
  },
  'sender-nonces': (rows, { sender }, now) => rows.purgeNonces(now, RELIEF_STEP, { sender }, 'lately'),
  'all-nonces': (rows, _request, now) => rows.purgeNonces(now, RELIEF_STEP, undefined, 'lately'),
};

const WITHOUT_NONCE: readonly Pressure[] = ['records', 'pending-bytes'];
const WITH_NONCE: readonly Pressure[] = [...WITHOUT_NONCE, 'nonces', 'sender-nonces', 'all-nonces'];

/** Returns the limits of which 80 % or more is used. Expired rows are deleted first. */
export function pressure(rows: Rows, request: AcceptRequest, now: number): readonly Pressure[] {
  const names = request.nonce ? WITH_NONCE : WITHOUT_NONCE;
  const near = nearLimits(rows, request, names);
  if (near.length === 0) return near;
  for (const name of near) RELIEF[name](rows, request, now);
  return nearLimits(rows, request, near);
}

const NONE: readonly Pressure[] = [];

/**
 * True if no limit is nearly used up, which holds for nearly every accept. The members are written out, because a loop
 * would be slower.
 */
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
