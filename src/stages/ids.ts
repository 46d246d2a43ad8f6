// Turns ids and nonces that senders choose into names that every store and log can hold (admission.md §6.8).
// Called by the stages, registrations and the inbox for everything that is stored or printed.

import { MAX_TEXT, printableText } from '../codec/printable.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { Event } from '../events/event.ts';
import type { Handled } from '../config/receiver-options.ts';
import type { Lease } from '../stores/store.ts';

/**
 * Ids for log lines and alarms, besides sender, key and delivery id. Senders choose them, so they are made
 * printable.
 */
export function idsOf(event: Event | undefined): Pick<Handled, 'taskId' | 'operationId'> {
  const ids: { taskId?: string; operationId?: string } = {};
  if (event?.kind === 'task') ids.taskId = printableText(event.taskId, MAX_TEXT);
  if (event?.operationId !== undefined) ids.operationId = printableText(event.operationId, MAX_TEXT);
  return ids;
}

/**
 * The run's number and the charged attempts, as `ctx`, hooks, log lines and alarms show them (admission.md
 * §4.3).
 */
export function runOf({ run, chargedAttempts }: Lease): Pick<Handled, 'run' | 'chargedAttempts'> {
  return { run, chargedAttempts };
}

/**
 * An id as stores keep it. Senders choose ids of any length and any code unit, which not every backend takes.
 * An id that a plain key cannot hold is stored by its hash. The hash is of its JSON, which keeps lone
 * surrogates distinct; UTF-8 would not. An id that looks like such a hash is hashed too, so that no sender
 * names another id's row.
 */
export function storedId(id: string, hashes: Hashes): string {
  if (/^(?!sha-256:[0-9a-f]{64}$)[\x20-\x7e]{1,255}$/.test(id)) return id;
  return `sha-256:${hashes.sha256Hex(JSON.stringify(id))}`;
}

const PLACES = 256;

/** One of 256 places. Collisions may be easy to find: all key ids that share a place are one sender's. */
function placeOf(keyid: string): string {
  let place = 0;
  for (let at = 0; at < keyid.length; at += 1) place = (place * 31 + keyid.charCodeAt(at)) % PLACES;
  return String(place);
}

/**
 * A nonce as a store keeps it: under one of 256 places that the key ids of its sender share. A sender invents
 * key ids freely, and stores keep a count for every name for good (admission.md §6.8). No nonce has a space
 * in it, so no two pairs become one.
 */
export function storedNonce(
  { keyid, nonce }: { readonly keyid: string; readonly nonce: string },
  hashes: Hashes,
): { readonly keyid: string; readonly nonce: string } {
  return { keyid: placeOf(keyid), nonce: storedId(`${keyid} ${nonce}`, hashes) };
}
