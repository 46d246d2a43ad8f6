import { request, type Agent } from 'node:http';
import type { SignedDelivery } from '../../../src/sender/sign.ts';

/** `status` is absent where nothing was answered. */
export interface PostAnswer {
  readonly status?: number;
  /** Of `WWW-Authenticate`. */
  readonly code?: string;
}

export interface PostOptions {
  readonly agent: Agent;
  /** Of 127.0.0.1. */
  readonly port: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Sends once. Connections are kept, unlike those of `src/testing/seller-post.ts`: hundreds of thousands of them would
 * use up the machine's ports.
 */
export function post(
  { method, url, headers, body }: SignedDelivery,
  { agent, port, timeoutMs, signal }: PostOptions,
): Promise<PostAnswer> {
  const { host, pathname: path } = new URL(url);
  const own = { Host: host, 'Content-Length': String(body.byteLength) };
  return new Promise((resolve) => {
    const sent = request({
      agent,
      method,
      host: '127.0.0.1',
      port,
      path,
      headers: { ...own, ...headers },
      signal,
    });
    const timer = setTimeout(() => sent.destroy(new Error('no answer in time')), timeoutMs);
    const end = (answer: PostAnswer): void => {
      clearTimeout(timer);
      resolve(answer);
    };
    sent.once('response', (response) => {
      const status = response.statusCode ?? 0;
      const code = /error="([^"]*)"/.exec(response.headers['www-authenticate'] ?? '')?.[1];
      // The status counts, also where its process dies before the last byte.
      response.on('error', () => undefined);
      response.once('close', () => end({ status, ...(code !== undefined && { code }) }));
      response.resume();
    });
    sent.on('error', () => end({}));
    sent.end(body);
  });
}
