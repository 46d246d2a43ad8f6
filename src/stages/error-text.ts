import { isError } from '../shared/realms.ts';

/** `FailRequest.error`: UTF-16 code units. */
const MOST = 1_000;

/**
 * What a handler's error says of itself, for the event's owner: its message alone. Well-formed and without NUL, so
 * that every backend can keep it.
 */
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
