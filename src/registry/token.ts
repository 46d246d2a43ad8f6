import { ConfigError } from '../errors.ts';
import { limited, orAborted } from '../time-limits.ts';
import { abortedCall, RegistryError } from './errors.ts';
import type { TokenSource } from './types.ts';

/** RFC 6750 §2.1. A line end in it would be a header of its own. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** @throws ConfigError */
export function tokenOf(given: unknown, { protocol, hostname }: URL): TokenSource | undefined {
  if (given === undefined) return undefined;
  if (protocol !== 'https:' && !LOOPBACK.test(hostname)) {
    throw new ConfigError('token: would go over http. Use an https baseUrl; http is for loopback alone.');
  }
  if (typeof given === 'function') return given as TokenSource;
  if (typeof given !== 'string' || !TOKEN.test(given)) {
    throw new ConfigError(
      'token: is not a bearer token. Give the API key (sk_…) or JWT alone, without "Bearer" and white space, or a function that gives one.',
    );
  }
  return () => given;
}

/**
 * What a token source gives, within `ms` and until the signal fires: a function that never settles holds no call.
 * @throws RegistryError
 */
export async function askToken(
  source: TokenSource,
  ms: number,
  signal: AbortSignal,
  rejected?: string,
): Promise<string> {
  let token: unknown;
  try {
    signal.throwIfAborted();
    const ask = async (): Promise<string> => await source(rejected);
    const limit = { ms, reason: `no token within ${ms} ms` };
    token = await limited(limit, signal, async (within) => await orAborted(ask(), within));
  } catch (error) {
    if (signal.aborted) throw abortedCall(error);
    throw new RegistryError('unauthorized', 'the token function failed', { cause: error });
  }
  if (typeof token === 'string' && TOKEN.test(token)) return token;
  throw new RegistryError('unauthorized', 'the token function gave no bearer token');
}

/** Characters that a token is known by: a name in a message may have been cut within it. */
const KNOWN_BY = 8;

/** `text` without the token, the beginning of one included: some servers repeat what they were sent. */
export function withoutToken(token: string | undefined, text: string): string {
  if (token === undefined) return text;
  const start = token.slice(0, KNOWN_BY).replaceAll(/[.+/]/g, String.raw`\$&`);
  return text.replaceAll(new RegExp(`${start}[A-Za-z0-9._~+/=%-]*`, 'g'), '***');
}
