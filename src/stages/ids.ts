import { MAX_TEXT, printableText } from '../codec/printable.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { Event } from '../events/event.ts';
import type { Handled } from '../config/receiver-options.ts';
import type { Lease } from '../stores/store.ts';

/** What log lines and alarms call an event by, beside its sender, its key and its delivery id; a sender chose them. */
export function idsOf(event: Event | undefined): Pick<Handled, 'taskId' | 'operationId'> {
  const ids: { taskId?: string; operationId?: string } = {};
  if (event?.kind === 'task') ids.taskId = printableText(event.taskId, MAX_TEXT);
  if (event?.operationId !== undefined) ids.operationId = printableText(event.operationId, MAX_TEXT);
  return ids;
}

/** Which run of an event it is, and how many are charged, as `ctx`, hooks, log lines and alarms say it (admission.md §4.3). */
export function runOf({ run, chargedAttempts }: Lease): Pick<Handled, 'run' | 'chargedAttempts'> {
  return { run, chargedAttempts };
}

/**
 * Ids come from senders and may be of any length and hold any code unit, which not every backend takes. Those that
 * a plain key cannot hold are stored by their hash; JSON keeps lone surrogates apart, which UTF-8 would not. So is one that
 * has the form of such a hash: no sender names another id's row.
 */
export function storedId(id: string, hashes: Hashes): string {
  if (/^(?!sha-256:[0-9a-f]{64}$)[\x20-\x7e]{1,255}$/.test(id)) return id;
  return `sha-256:${hashes.sha256Hex(JSON.stringify(id))}`;
}

const PLACES = 256;

/** It need not be hard to find two key ids of one place: they are one sender's. */
function placeOf(keyid: string): string {
  let place = 0;
  for (let at = 0; at < keyid.length; at += 1) place = (place * 31 + keyid.charCodeAt(at)) % PLACES;
  return String(place);
}

/**
 * A nonce as a store knows it: under one of 256 places that the key ids of its sender share. A sender makes key ids as it likes, and
 * stores count by each name that they were given, for good (admission.md §6.8). No nonce has a space in it, so that no two pairs are one.
 */
export function storedNonce(
  { keyid, nonce }: { readonly keyid: string; readonly nonce: string },
  hashes: Hashes,
): { readonly keyid: string; readonly nonce: string } {
  return { keyid: placeOf(keyid), nonce: storedId(`${keyid} ${nonce}`, hashes) };
}
