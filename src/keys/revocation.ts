import type { RaiseAlarm } from '../alarms.ts';
import { parseStrictObject } from '../codec/strict-json.ts';
import type { SenderEntry } from '../senders.ts';
import type { Copy, DocumentKind, Parsed } from './document.ts';
import type { DocumentCache } from './document-cache.ts';
import { clampLife, MAX_LIFE_MS } from './freshness.ts';

/** What an operator publishes (verification.md, section 5 "Revocation"), as far as check 9 needs it. */
export interface RevocationList {
  readonly kids: ReadonlySet<string>;
  /** Unix ms. */
  readonly nextUpdate: number;
  /** Ms between `updated` and `next_update`, within [1 min, 30 min]. */
  readonly interval: number;
}

export type RevocationState = 'valid' | 'revoked' | 'stale';

/** 256 KiB: verification.md, section 5. */
const MAX_BYTES = 262_144;
/** Intervals after `next_update` for which a list that could not be refreshed is still fresh enough. */
const GRACE_INTERVALS = 4;

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

export const REVOCATION_LIST: DocumentKind<RevocationList> = {
  name: 'revocation list',
  maxBytes: MAX_BYTES,
  // How old a list may be is decided by its own `next_update`, in `staleAt`.
  hardLimitMs: Number.POSITIVE_INFINITY,
  parse: parseRevocationList,
  dueAt: (list, began) => began + clampLife(list.nextUpdate - began),
};

function parseRevocationList(bytes: Uint8Array, url: string): Parsed<RevocationList> {
  const json = parseStrictObject(bytes);
  if (!json.ok) return { ok: false, reason: json.detail };
  const { issuer, updated, next_update: next, revoked_kids: kids, revoked_jtis: jtis } = json.value;
  if (issuer !== new URL(url).origin) return { ok: false, reason: 'issuer is not the origin of the list' };
  const nextUpdate = instant(next);
  if (nextUpdate === undefined) return { ok: false, reason: 'next_update is not a timestamp' };
  const updatedAt = instant(updated);
  if (updatedAt === undefined) return { ok: false, reason: 'updated is not a timestamp' };
  if (!isStrings(kids)) return { ok: false, reason: 'revoked_kids is not an array of strings' };
  // No token of this protocol's webhooks has a jti; the member is read only to see that the list is one.
  if (jtis !== undefined && !isStrings(jtis)) {
    return { ok: false, reason: 'revoked_jtis is not an array of strings' };
  }
  return {
    ok: true,
    value: { kids: new Set(kids), nextUpdate, interval: clampLife(nextUpdate - updatedAt) },
  };
}

function instant(text: unknown): number | undefined {
  if (typeof text !== 'string' || !TIMESTAMP.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** Unix ms after which a list that was not refreshed decides nothing. A `next_update` far ahead counts as 30 min. */
function staleAt({ value, began }: Copy<RevocationList>): number {
  return Math.min(value.nextUpdate, began + MAX_LIFE_MS) + GRACE_INTERVALS * value.interval;
}

export interface RevocationOptions {
  readonly cache: DocumentCache;
  readonly now: () => number;
  readonly raiseAlarm: RaiseAlarm;
}

/** Check 9 of verification.md, section 2. */
export function createRevocationCheck(
  options: RevocationOptions,
): (sender: SenderEntry, keyid: string) => Promise<RevocationState> {
  // Lists whose alarm was raised and which have not been fresh since; their URLs come from configuration.
  const reported = new Set<string>();
  return async (sender, keyid) => {
    if (sender.revocation?.revokedKids?.includes(keyid) === true) return 'revoked';
    const url = sender.revocation?.url;
    if (url === undefined) return 'valid';
    const answer = await options.cache.current(REVOCATION_LIST, url);
    // A key once revoked stays so, however old the list is.
    if (answer.ok && answer.copy.value.kids.has(keyid)) return 'revoked';
    if (answer.ok && options.now() <= staleAt(answer.copy)) {
      reported.delete(url);
      return 'valid';
    }
    if (!reported.has(url)) {
      reported.add(url);
      const why = answer.ok ? 'it is past next_update and its grace' : answer.reason;
      const message = `revocation list at ${url}: ${why}. Deliveries of ${sender.agentUrl} get 503 until it is fresh.`;
      options.raiseAlarm({ code: 'revocation_stale', message, sender: sender.agentUrl, url });
    }
    return 'stale';
  };
}
