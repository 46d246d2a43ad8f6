import { sleep } from '../time-limits.ts';
import { flag, MAX_TIMER_MS, onlyKnown, text, wholeNumber } from '../config/validate.ts';
import { ConfigError } from '../errors.ts';
import { urlRefusedReason } from '../keys/net/addresses.ts';
import { defaultTransport } from '../keys/net/transport.ts';
import { type Protocol, protocolFor } from '../protocol.ts';
import { type RegistryConnection, tokenOf } from './exchange.ts';
import type { RegistryOptions, TokenSource } from './types.ts';

/** Options, checked. */
export interface Settings extends RegistryConnection {
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

/** A day. */
const MAX_WAIT_MS = 86_400_000;

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
    deadlineMs: wholeNumber('deadlineMs', options.deadlineMs, 30_000, 1, MAX_TIMER_MS),
    maxAnswerBytes: wholeNumber('maxAnswerBytes', options.maxAnswerBytes, 33_554_432),
    attempts: wholeNumber('attempts', options.attempts, 3),
    maxWaitMs: wholeNumber('maxWaitMs', options.maxWaitMs, 30_000, 0, MAX_WAIT_MS),
    transport: options.transport ?? defaultTransport(allowLoopback, 'system'),
    now: options.now ?? Date.now,
    random: options.random ?? Math.random,
    sleep: options.sleep ?? sleep,
  };
}

function baseUrlOf(given: unknown, allowLoopback: boolean): URL {
  const url = text('baseUrl', given);
  const refused = urlRefusedReason(url, allowLoopback);
  if (refused !== undefined) {
    throw new ConfigError(`baseUrl: ${refused}. Give the registry's URL, e.g. 'https://registry.example'.`);
  }
  const parsed = new URL(url);
  if (parsed.search !== '' || parsed.hash !== '') {
    throw new ConfigError('baseUrl: has a query or a fragment. Give the URL that paths are put behind.');
  }
  return parsed;
}
