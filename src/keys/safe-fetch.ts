import { printableName } from '../codec/printable.ts';
import type { Transport, TransportInit } from './contract.ts';
import { refusedUrl } from './url-policy.ts';

/** What every fetch of a key document is held to (verification.md, section 5 "Fetching counterparty URLs"). */
export interface FetchRules {
  readonly transport: Transport;
  readonly allowLoopback: boolean;
  /** Ms from the first byte sent to the last received: an idle timeout would not stop a drip. */
  readonly deadlineMs: number;
}

/** `reason` is for the owner's log. */
export type Fetched =
  | { readonly ok: true; readonly bytes: Uint8Array; readonly headers: Headers }
  | { readonly ok: false; readonly reason: string };

const REQUEST_HEADERS: Readonly<Record<string, string>> = {
  accept: 'application/json',
  // 64 KiB of gzip can hold 50 MB: nothing encoded is asked for, and nothing encoded is read.
  'accept-encoding': 'identity',
};

/**
 * The platform's `fetch` behind the URL rules of verification.md, section 5. What a name resolves to is not judged here:
 * `fetch` does not say where it connects. An owner whose network has inner hosts to protect passes a transport that
 * goes out through an egress proxy.
 */
export function defaultTransport(allowLoopback: boolean): Transport {
  return async (url: string, init: TransportInit): Promise<Response> => {
    const refused = refusedUrl(url, allowLoopback);
    if (refused !== undefined) throw new TypeError(refused);
    return await globalThis.fetch(url, init);
  };
}

/**
 * Fetches one document under the rules, whatever transport does it. Never rejects.
 * @param controller ends the fetch when aborted; it is aborted in any case before this settles, so that a refused or
 * endless answer holds no connection.
 */
export async function fetchDocument(
  rules: FetchRules,
  url: string,
  maxBytes: number,
  controller: AbortController,
): Promise<Fetched> {
  const refused = refusedUrl(url, rules.allowLoopback);
  if (refused !== undefined) return { ok: false, reason: refused };
  const { signal } = controller;
  const timer = setTimeout(() => {
    controller.abort(new Error(`no whole answer within ${rules.deadlineMs} ms`));
  }, rules.deadlineMs);
  try {
    const init: TransportInit = { method: 'GET', headers: REQUEST_HEADERS, redirect: 'manual', signal };
    const response = await orAborted(rules.transport(url, init), signal);
    const flaw = responseFlaw(response, maxBytes);
    if (flaw !== undefined) return { ok: false, reason: flaw };
    const bytes = await readCapped(response, maxBytes, signal);
    if (bytes === undefined) return { ok: false, reason: `more than ${maxBytes} bytes` };
    return { ok: true, bytes, headers: response.headers };
  } catch (error) {
    return { ok: false, reason: failureText(error) };
  } finally {
    clearTimeout(timer);
    controller.abort();
  }
}

function responseFlaw(response: Response, maxBytes: number): string | undefined {
  // A redirect that a transport followed by itself led somewhere that nobody judged.
  if (response.redirected || response.type === 'opaqueredirect') return 'answered with a redirect';
  if (response.status >= 300 && response.status < 400) return `answered with a redirect (${response.status})`;
  if (response.status !== 200) return `answered ${response.status}`;
  const encoding = response.headers.get('content-encoding');
  if (encoding !== null && encoding.trim().toLowerCase() !== 'identity')
    return `content-encoding ${printableName(encoding)}`;
  return Number(response.headers.get('content-length')) > maxBytes
    ? `more than ${maxBytes} bytes`
    : undefined;
}

/** The whole body, or undefined as soon as it is known to be longer than `maxBytes`. */
async function readCapped(
  response: Response,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  if (response.body === null) return new Uint8Array();
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await orAborted(reader.read(), signal);
      if (done) return joined(chunks, size);
      size += value.byteLength;
      if (size > maxBytes) return undefined;
      chunks.push(value);
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

/** Does not rely on `promise` heeding the signal: a transport that was passed in may not. */
async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => {
      reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** `fetch failed` says nothing; its cause does. */
function failureText(error: unknown): string {
  if (!(error instanceof Error)) return 'the transport failed';
  const { cause } = error;
  return cause instanceof Error && cause.message !== ''
    ? `${error.message}: ${cause.message}`
    : error.message;
}
