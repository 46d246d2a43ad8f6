import { createHash } from 'node:crypto';
import type { SignedDelivery } from '../../sender/sign.ts';
import type { PostResult } from '../../testing/seller-post.ts';

/** What HTTP itself writes: none of it is told by the receiver's own code, and a kid may be `2026`. */
const PLAIN_HEADERS: ReadonlySet<string> = new Set([
  'age',
  'allow',
  'connection',
  'content-length',
  'content-type',
  'date',
  'expires',
  'keep-alive',
  'last-modified',
  'retry-after',
  'transfer-encoding',
]);

/** Fewer bytes are no digest. */
const DIGEST_BYTES = 32;

/** A digest as it may be written. */
function formsOf(digest: Buffer): readonly string[] {
  if (digest.length < DIGEST_BYTES) return [];
  return [digest.toString('hex'), digest.toString('base64').replace(/=+$/, ''), digest.toString('base64url')];
}

/** What no refusal of this delivery may repeat: its key id, and the digests that it claims and has. */
export function secretsIn({ headers, body }: SignedDelivery): readonly string[] {
  const kid = /;keyid="([^"]+)"/.exec(headers['Signature-Input'] ?? '')?.[1];
  const claimed = [...(headers['Content-Digest'] ?? '').matchAll(/=:([^:]*):/g)].map(([, text = '']) =>
    Buffer.from(text, 'base64'),
  );
  const own = createHash('sha256').update(body).digest();
  return [...(kid === undefined ? [] : [kid]), ...[own, ...claimed].flatMap(formsOf)];
}

/** As a word of its own: a kid may be as short as `k`. */
function tells(text: string, secret: string): boolean {
  const inWord = (char: string | undefined): boolean => char !== undefined && /[\w-]/.test(char);
  for (let at = text.indexOf(secret); at !== -1; at = text.indexOf(secret, at + 1)) {
    if (!inWord(text[at - 1]) && !inWord(text[at + secret.length])) return true;
  }
  return false;
}

/** verification.md §2.24: no key ids, no digests, nothing that a prober could use, in body or headers. */
export function leakOf({ body, headers }: PostResult, secrets: readonly string[]): string | undefined {
  const told = secrets.filter((secret) => secret !== '');
  if (told.some((secret) => tells(body, secret))) return 'the body tells a key id or a digest';
  const name = Object.keys(headers).find(
    (own) => !PLAIN_HEADERS.has(own) && told.some((secret) => tells(headers[own] ?? '', secret)),
  );
  return name === undefined ? undefined : `the header ${name} tells a key id or a digest`;
}
