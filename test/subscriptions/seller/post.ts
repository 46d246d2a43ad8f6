import { createHash, createHmac } from 'node:crypto';
import { Agent, request } from 'node:http';
import { type SellerKey, signedHeaders } from '../../reliability/market/seller/keys.ts';
import type { Entry } from './entries.ts';

/** An answer; the status is absent where there is none. */
export interface Answered {
  readonly status?: number;
  readonly text: string;
}

/** One connection each: a receiver that is killed takes no other delivery with it. */
const agent = new Agent({ keepAlive: false });

/** Ms. */
const NO_ANSWER_MS = 10_000;

function post(url: string, body: Buffer, headers: Record<string, string>): Promise<Answered> {
  // Other subscribers' endpoints are nowhere: nobody answers there.
  if (!url.startsWith('http:')) return Promise.resolve({ text: '' });
  return new Promise((resolve) => {
    const sent = request(url, {
      agent,
      method: 'POST',
      headers: { ...headers, 'Content-Length': String(body.byteLength) },
    });
    const timer = setTimeout(() => sent.destroy(new Error('no answer in time')), NO_ANSWER_MS);
    const end = (answered: Answered): void => {
      clearTimeout(timer);
      resolve(answered);
    };
    sent.once('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', () => undefined);
      response.once('close', () => {
        const status = response.statusCode;
        const text = Buffer.concat(chunks).toString();
        end(response.complete && status !== undefined ? { status, text } : { text });
      });
    });
    sent.on('error', () => end({ text: '' }));
    sent.end(body);
  });
}

/** Signed by RFC 9421, as a proof of control is whatever the entry's own mode. */
export function postSigned(url: string, value: object, key: SellerKey): Promise<Answered> {
  const body = Buffer.from(JSON.stringify(value));
  return post(url, body, signedHeaders(url, body, key));
}

/** In the mode of the entry. */
export function postEvent({ url, authentication }: Entry, value: object, key: SellerKey): Promise<Answered> {
  const body = Buffer.from(JSON.stringify(value));
  const { schemes: [scheme] = [], credentials = '' } = authentication ?? {};
  if (scheme === undefined) return post(url, body, signedHeaders(url, body, key));
  if (scheme === 'Bearer') {
    const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${credentials}` };
    return post(url, body, headers);
  }
  const at = String(Math.floor(Date.now() / 1000));
  const mac = createHmac('sha256', credentials).update(`${at}.`).update(body).digest('hex');
  return post(url, body, {
    'Content-Type': 'application/json',
    'X-PROTO-Signature': `sha256=${mac}`,
    'X-PROTO-Timestamp': at,
  });
}

/** How events will come, as a proof of control says it. */
export function deliveryAuthOf({ authentication }: Entry): object {
  const { schemes: [mode] = [], credentials = '' } = authentication ?? {};
  if (mode === undefined) return { mode: 'rfc9421' };
  return { mode, credential_fingerprint: createHash('sha256').update(credentials).digest('hex') };
}
