// Converts any value that a handler threw into a short text that every store can keep.
// Called by `settle`; the owner reads the text in logs, alarms and `receiver.inbox`.

import { isError } from '../shared/realms.ts';

/** Longest `FailRequest.error`, in UTF-16 code units. */
const MOST = 1_000;

/** Returns the message of a handler's error. It is well-formed and without NUL, so that every backend can store it. */
export function errorText(error: unknown): string {
  return messageOf(error).slice(0, MOST).toWellFormed().replaceAll('\0', '\uFFFD');
}

function messageOf(error: unknown): string {
  try {
    return String(isError(error) ? error.message || error.name : error);
  } catch {
    return 'an error that has no text';
  }
}
