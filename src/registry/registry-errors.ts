/* Errors that the registry's client makes. */
import type { RegistryErrorCode } from '../shared/codes.ts';
import { RegistryError } from './types.ts';

const BY_STATUS: Readonly<Record<number, RegistryErrorCode>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  429: 'rate_limited',
};

/** Nothing was sent: an argument of the caller's is wrong. */
export const badArgument = (message: string): RegistryError => new RegistryError('bad_request', message);

/** The caller's signal fired. */
export const abortedCall = (cause: unknown): RegistryError =>
  new RegistryError('unreachable', 'the call was aborted', { cause });

/** The code of an answer that is not 2xx. */
export function codeOf(status: number): RegistryErrorCode {
  if (status >= 500) return 'server';
  return status < 400 ? 'invalid_answer' : (BY_STATUS[status] ?? 'bad_request');
}
