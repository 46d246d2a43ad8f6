// Defines the error with which dev refuses a request: code, status and body (dev.md §4.1). Every part of the API throws
// this error, and dev.ts answers with it.
import { PrintableError } from '../codec/printable-value.ts';
import type { DevError, DevErrorCode } from './wire.ts';

const STATUSES: Readonly<Record<DevErrorCode, number>> = {
  forbidden_host: 403,
  forbidden_origin: 403,
  unauthorized: 401,
  not_found: 404,
  method_not_allowed: 405,
  unsupported_media_type: 415,
  body_too_large: 413,
  bad_request: 400,
  mistake_needs_signature: 400,
  unknown_mistake: 400,
  unknown_scenario: 404,
  scenario_running: 409,
  unreadable_capture: 400,
  not_kept: 409,
  too_many_streams: 503,
  internal: 500,
};

/** The error with which dev's API refuses a request. */
export class ApiError extends PrintableError {
  override readonly name = 'ApiError';
  readonly code: DevErrorCode;
  /** The methods for the header `Allow` of a 405 response. */
  readonly allow: string | undefined;

  constructor(code: DevErrorCode, message: string, allow?: string) {
    super(message);
    this.code = code;
    this.allow = allow;
  }

  get status(): number {
    return STATUSES[this.code];
  }

  /** Returns the JSON body of the error response. */
  toJSON(): DevError {
    return { error: { code: this.code, message: this.message } };
  }
}

/** Makes the error for a request in which a member is missing or wrong. */
export const badRequest = (message: string): ApiError => new ApiError('bad_request', message);
