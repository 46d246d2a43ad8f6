// Names the limits that are nearly used up after an accept, for the owner's alarm (admission.md §6.6, §8.9).
// Called at the end of every accept.
import { PRESSURE_SHARE } from '../constants.ts';
import type { AcceptRequest, Pressure, StoreLimits } from '../store.ts';
import { PRESSURE_USAGE, type Rows, type Usage } from './rule-rows.ts';

/** The most rows purged before a limit that seems nearly used up raises an alarm. */
const RELIEF_STEP = 1024;

const PRESSURE_LIMIT: Record<Pressure, keyof StoreLimits> = {
  records: 'maxRecordsPerSender',
  'pending-bytes': 'maxPendingBytesPerSender',
  nonces: 'maxNoncesPerKey',
  'sender-nonces': 'maxNoncesPerSender',
  'all-nonces': 'maxNonces',
};

/**
 * Purges rows of the limit that seems nearly used up, because some may have expired. With `'lately'` a purge of the
 * last seconds is enough, so a sender near a cap does not cost a sweep for every accept.
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

/** Returns the limits that are used to 80 % or more. Expired rows are purged first. */
export function pressure(rows: Rows, request: AcceptRequest, now: number): readonly Pressure[] {
  const names = request.nonce ? WITH_NONCE : WITHOUT_NONCE;
  const near = nearLimits(rows, request, names);
  if (near.length === 0) return near;
  for (const name of near) RELIEF[name](rows, request, now);
  return nearLimits(rows, request, near);
}

const NONE: readonly Pressure[] = [];

/**
 * True if no limit is nearly used up, as in nearly every accept. The members are written out, because a loop is
 * slower.
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
