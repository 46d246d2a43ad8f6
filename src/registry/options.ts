import { flag, onlyKnown, text, wholeNumber } from '../config/validate.ts';
import { ConfigError } from '../errors.ts';
import { refusedUrl } from '../keys/url-policy.ts';
import { protocolFor, type Protocol } from '../protocol.ts';
import type { Connection } from './exchange.ts';
import { RegistryError } from './errors.ts';
import { defaultTransport } from '../keys/safe-fetch.ts';
import type { RegistryOptions, TokenSource } from './types.ts';

/** Options, checked. */
export interface Settings extends Connection {
  readonly baseUrl: URL;
  readonly protocol: Protocol;
  readonly rowCapParameter: string;
  readonly token: TokenSource | undefined;
}

const KNOWN: Readonly<Record<keyof RegistryOptions, true>> = {
  baseUrl: true,
  token: true,
  protocol: true,
  rowCapParameter: true,
  deadlineMs: true,
  maxAnswerBytes: true,
  attempts: true,
  maxWaitMs: true,
  allowLoopback: true,
  transport: true,
  now: true,
  random: true,
  sleep: true,
};

/** @throws ConfigError where an option is missing or wrong; the message says what to change. */
export function settingsOf(options: RegistryOptions<string>): Settings {
  onlyKnown('createRegistry', options, KNOWN);
  const allowLoopback = flag('allowLoopback', options.allowLoopback);
  const baseUrl = baseUrlOf(options.baseUrl, allowLoopback);
  const functions = {
    transport: options.transport,
    now: options.now,
    random: options.random,
    sleep: options.sleep,
  };
  for (const [name, value] of Object.entries(functions)) {
    if (value !== undefined && typeof value !== 'function')
      throw new ConfigError(`${name}: is not a function.`);
  }
  return {
    baseUrl,
    protocol: protocolFor(options.protocol),
    rowCapParameter: text('rowCapParameter', options.rowCapParameter ?? 'limit'),
    token: tokenOf(options.token, baseUrl),
    deadlineMs: wholeNumber('deadlineMs', options.deadlineMs, 30_000, 1, 2_147_483_647),
    maxAnswerBytes: wholeNumber('maxAnswerBytes', options.maxAnswerBytes, 33_554_432),
    attempts: wholeNumber('attempts', options.attempts, 3),
    maxWaitMs: wholeNumber('maxWaitMs', options.maxWaitMs, 30_000, 0, 2_147_483_647),
    transport: options.transport ?? defaultTransport(allowLoopback, 'system'),
    now: options.now ?? Date.now,
    random: options.random ?? Math.random,
    sleep: options.sleep ?? wait,
  };
}

function baseUrlOf(given: unknown, allowLoopback: boolean): URL {
  const url = text('baseUrl', given);
  const refused = refusedUrl(url, allowLoopback);
  if (refused !== undefined) {
    throw new ConfigError(`baseUrl: ${refused}. Give the registry's URL, e.g. 'https://registry.example'.`);
  }
  const parsed = new URL(url);
  if (parsed.search !== '' || parsed.hash !== '') {
    throw new ConfigError('baseUrl: has a query or a fragment. Give the URL that paths are put behind.');
  }
  return parsed;
}

/** RFC 6750 §2.1. A line end in it would be a header of its own. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

function tokenOf(given: unknown, { protocol, hostname }: URL): TokenSource | undefined {
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

/** What a token source gives. @throws RegistryError */
export async function askToken(source: TokenSource, rejected?: string): Promise<string> {
  let token: unknown;
  try {
    token = await source(rejected);
  } catch (error) {
    throw new RegistryError('unauthorized', 'the token function failed', { cause: error });
  }
  if (typeof token === 'string' && TOKEN.test(token)) return token;
  throw new RegistryError('unauthorized', 'the token function gave no bearer token');
}

async function wait(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
