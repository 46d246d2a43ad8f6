// Makes the errors of the registry's client, and the code of an answer's status.
// Called by the other files of this folder; the class is in `types.ts`.

import type { RegistryErrorCode } from '../shared/codes.ts';
import { RegistryError } from './types.ts';

const BY_STATUS: Readonly<Record<number, RegistryErrorCode>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  429: 'rate_limited',
};

/** Error of a wrong argument; nothing was sent. */
export const badArgument = (message: string): RegistryError => new RegistryError('bad_request', message);

/** Error of a call whose signal fired. */
export const abortedCall = (cause: unknown): RegistryError =>
  new RegistryError('unreachable', 'the call was aborted', { cause });

/** The code of an answer that is not 2xx. */
export function codeOf(status: number): RegistryErrorCode {
  if (status >= 500) return 'server';
  return status < 400 ? 'invalid_answer' : (BY_STATUS[status] ?? 'bad_request');
}
