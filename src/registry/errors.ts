/** Stable codes of `RegistryError`. */
export type RegistryErrorCode =
  /** An argument is wrong (nothing was sent, `status` is undefined), or the registry answered 400 or another 4xx. */
  | 'bad_request'
  /** 401, or there is no usable token. */
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'rate_limited'
  /** 5xx. */
  | 'server'
  /** 2xx whose body is not what the contract says, or a redirect, which is not followed. */
  | 'invalid_answer'
  /** No whole answer: connection, time, size, or the caller's signal. */
  | 'unreachable';

interface Facts extends ErrorOptions {
  readonly status?: number | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** What a call of the registry failed with. `message` has no token in it. */
export class RegistryError extends Error {
  override readonly name = 'RegistryError';
  readonly code: RegistryErrorCode;
  /** HTTP status; undefined where there was no answer. */
  readonly status: number | undefined;
  /** Ms that the registry asked to wait, where it did. */
  readonly retryAfterMs: number | undefined;

  constructor(code: RegistryErrorCode, message: string, { status, retryAfterMs, ...options }: Facts = {}) {
    super(message, options);
    this.code = code;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

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
