// Parses `Content-Digest` and compares it with the body: check 11 (verification.md §2.11, RFC 9530).
// Called by `checks.ts` for the header and by `verify.ts` for the body.

import type { Hashes } from '../../crypto/engine.ts';
import { decodeBase64, isHexOf, fastBytes } from '../../codec/encoding.ts';
import { readDictionary } from './signature-input.ts';

/** The digest in `Content-Digest`. Only the member `sha-256` is used; without it no body matches. */
export interface ContentDigest {
  readonly sha256: Uint8Array | undefined;
}

const SHA256_BYTES = 32;

const FAST_START = 'sha-256=:';

function fromBase64(base64: string | undefined): ContentDigest | string {
  const sha256 = base64 === undefined ? undefined : decodeBase64(base64);
  return sha256?.length === SHA256_BYTES ? { sha256 } : 'has a sha-256 member that is not 32 bytes of base64';
}

/**
 * Parses `Content-Digest` (RFC 9530 §2), as a part of check 1.
 * @param lines the header's lines; repeated ones are refused.
 * @returns the digest, or the mistake as a text that follows the header's name, e.g. `is repeated`. Never throws.
 */
export function readContentDigest(lines: readonly string[]): ContentDigest | string {
  const [line = ''] = lines;
  if (lines.length > 1) return 'is repeated';
  const fast = fastBytes(line, FAST_START);
  if (fast?.length === SHA256_BYTES) return { sha256: fast };
  const members = readDictionary(line);
  if (typeof members === 'string') return members;
  const member = members.get('sha-256');
  return member ? fromBase64(member.base64) : { sha256: undefined };
}

/**
 * Performs check 11: the member `sha-256` equals the digest of the raw bytes. Both values are public, so no
 * constant-time comparison is needed.
 * @param actual SHA-256 of the body in hex.
 * @returns `actual`, which the store needs too; undefined if the two differ.
 */
export function matchingHash(digest: ContentDigest, actual: string): string | undefined {
  return digest.sha256 && isHexOf(actual, digest.sha256) ? actual : undefined;
}

/** Performs check 11 (the digest) for callers that do not need the hash. */
export function digestMatches(digest: ContentDigest, body: Uint8Array, hashes: Hashes): boolean {
  return matchingHash(digest, hashes.sha256Hex(body)) !== undefined;
}
