import type { DocumentKind } from './document.ts';
import { clampLife } from './freshness.ts';
import { claimsToBeList, parsePublished, type PublishedList } from './revocation-list.ts';
import type { Registers } from './revocation-registers.ts';

/** 256 KiB: verification.md §5.13. */
const MAX_BYTES = 262_144;
/** Ms after which an origin that has no list is asked again: the first one may come with the first stolen key. */
const NONE_LIFE_MS = 5 * 60_000;

/**
 * Revocation lists as documents. Where none is required, whatever does not set up to be one (a web site's page for any
 * path, nothing at all) says that there is none. From the first that does, one is required, and its absence a failure.
 */
export function revocationKind(registers: Pick<Registers, 'get'>): DocumentKind<PublishedList> {
  return {
    name: 'revocation list',
    maxBytes: MAX_BYTES,
    // How old a list may be is decided by its own `next_update`, in `isFresh`.
    hardLimitMs: Number.POSITIVE_INFINITY,
    parse: (bytes, url) => {
      const register = registers.get(url);
      if (register !== undefined && claimsToBeList(bytes)) register.required = true;
      if (register?.required !== true) return { ok: true, value: {} };
      if (bytes.length === 0) return { ok: false, reason: 'the server says that there is none' };
      return parsePublished(bytes, url);
    },
    dueAt: ({ list }, began) =>
      began + (list === undefined ? NONE_LIFE_MS : clampLife(list.nextUpdate - began)),
  };
}
