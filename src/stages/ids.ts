// Converts ids and nonces that senders choose into names that every store and log can keep (admission.md §6.8).
// Called by the stages, registrations, the poller, the reconciler and the inbox for ids that are stored or printed.

import { MAX_TEXT, printableText } from '../codec/printable.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { Event } from '../events/event.ts';
import type { Handled } from '../config/receiver-options.ts';
import type { Lease } from '../stores/store.ts';

/**
 * Returns the event's task and operation ids for log lines and alarms, which also have sender, key and delivery id.
 * They are made printable, because senders choose them.
 */
export function idsOf(event: Event | undefined): Pick<Handled, 'taskId' | 'operationId'> {
  const ids: { taskId?: string; operationId?: string } = {};
  if (event?.kind === 'task') ids.taskId = printableText(event.taskId, MAX_TEXT);
  if (event?.operationId !== undefined) ids.operationId = printableText(event.operationId, MAX_TEXT);
  return ids;
}

/**
 * Returns the run's number and its charged attempts, in the form of `ctx`, hooks, log lines and alarms (admission.md
 * §4.3).
 */
export function runOf({ run, chargedAttempts }: Lease): Pick<Handled, 'run' | 'chargedAttempts'> {
  return { run, chargedAttempts };
}

/**
 * Returns an id in the form in which stores keep it. Senders choose ids of any length and any code unit, which not
 * every backend can store. An id other than 1 to 255 printable ASCII characters is replaced by the hash of its JSON.
 * JSON keeps lone surrogates distinct; UTF-8 would not. An id that looks like such a hash is hashed too, so that no
 * sender can name the row of another id.
 */
export function storedId(id: string, hashes: Hashes): string {
  if (/^(?!sha-256:[0-9a-f]{64}$)[\x20-\x7e]{1,255}$/.test(id)) return id;
  return `sha-256:${hashes.sha256Hex(JSON.stringify(id))}`;
}

const PLACES = 256;

/**
 * Maps a key id to one of 256 numbers. Two key ids with the same number do no harm: a sender's key ids can collide only
 * with each other.
 */
function placeOf(keyid: string): string {
  let place = 0;
  for (let at = 0; at < keyid.length; at += 1) place = (place * 31 + keyid.charCodeAt(at)) % PLACES;
  return String(place);
}

/**
 * Returns a nonce in the form in which a store keeps it: under one of 256 numbers instead of its key id. A sender can
 * invent any number of key ids, and stores would keep a count for each for ever (admission.md §6.8). No nonce contains
 * a space, so two pairs of key id and nonce never give the same text.
 */
export function storedNonce(
  { keyid, nonce }: { readonly keyid: string; readonly nonce: string },
  hashes: Hashes,
): { readonly keyid: string; readonly nonce: string } {
  return { keyid: placeOf(keyid), nonce: storedId(`${keyid} ${nonce}`, hashes) };
}
