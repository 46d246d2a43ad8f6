import type { Alarm, HeadersInput } from '../../src/index.ts';
import type { AuthContext, AuthRequest } from '../../src/auth/for-tests.ts';
import { createHashes } from '../../src/crypto/for-tests.ts';
import { createEngine } from '../../src/auth/rfc9421/index.ts';
import {
  type AuthPolicy,
  editionFor,
  headerFields,
  protocolsFor,
  type SenderEntry,
} from '../../src/for-tests.ts';
import type { KeyResolver } from '../../src/keys/for-tests.ts';

/** Legacy schemes know their senders by a shared secret: asking for keys is a mistake of ours. */
const NO_KEYS: KeyResolver = {
  find: () => Promise.reject(new Error('keys were asked for')),
  findReplaced: () => Promise.reject(new Error('keys were asked for')),
  revocation: () => Promise.reject(new Error('keys were asked for')),
  freshUntil: async () => undefined,
  whose: () => undefined,
  warm: () => Promise.resolve(),
  stop: () => undefined,
  resume: () => undefined,
};

const engine = await createEngine();

export interface Bench {
  readonly context: AuthContext;
  readonly alarms: readonly Alarm[];
}

export function bench(protocol?: string): Bench {
  const alarms: Alarm[] = [];
  const context: AuthContext = {
    protocols: protocolsFor(protocol),
    engine,
    hashes: createHashes(),
    keys: NO_KEYS,
    hostCheck: 'strict',
    raiseAlarm: (alarm) => alarms.push(alarm),
  };
  return { context, alarms };
}

export function sender(host: string, auth: AuthPolicy): SenderEntry {
  return { agentUrl: `https://${host}/mcp`, auth, edition: editionFor(), maxNoncesPerKey: 100_000 };
}

/** Unix seconds of every request's arrival. */
export const NOW = 1_760_000_000;

export function request(
  senders: readonly SenderEntry[],
  headers: HeadersInput,
  rawBody: Uint8Array,
  arrivedAt: number = NOW * 1000,
): AuthRequest {
  return {
    delivery: { method: 'POST', url: undefined, headers: headerFields(headers), rawBody },
    target: { targetUri: 'https://buyer.example/hook', authority: 'buyer.example' },
    senders,
    arrivedAt,
  };
}
