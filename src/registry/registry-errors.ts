// Makes the errors of the registry client, and maps HTTP statuses to error codes.
// Called by the other files of this folder; the class `RegistryError` is in `types.ts`.

import type { RegistryErrorCode } from '../shared/codes.ts';
import { RegistryError } from './types.ts';

const BY_STATUS: Readonly<Record<number, RegistryErrorCode>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  429: 'rate_limited',
};

/** Makes the error for a wrong argument. Nothing was sent. */
export const badArgument = (message: string): RegistryError => new RegistryError('bad_request', message);

/** Makes the error for a call whose signal aborted. */
export const abortedCall = (cause: unknown): RegistryError =>
  new RegistryError('unreachable', 'the call was aborted', { cause });

/** Returns the error code for an answer with this HTTP status, which is not 2xx. */
export function codeOf(status: number): RegistryErrorCode {
  if (status >= 500) return 'server';
  return status < 400 ? 'invalid_answer' : (BY_STATUS[status] ?? 'bad_request');
}
