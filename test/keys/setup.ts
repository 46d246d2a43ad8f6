import { createHash, generateKeyPairSync } from 'node:crypto';
import { onTestFinished } from 'vitest';
import type { Alarm, AlarmCode, Jwk, Store } from '../../src/index.ts';
import { createEngine, type CryptoEngine } from '../../src/auth/rfc9421/index.ts';
import {
  editionFor,
  protocolsFor,
  safeLogger,
  type SafeLogger,
  type SenderEntry,
} from '../../src/for-tests.ts';
import {
  createKeyResolver,
  type Declared,
  declaredRow,
  defaultFetch,
  type KeyResolver,
  type KeyResolverOptions,
} from '../../src/keys/for-tests.ts';
import { type KeyServer, startKeyServer } from './key-server.ts';

export const SILENT: SafeLogger = safeLogger({
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
});

/** A public Ed25519 key as a seller publishes it. */
export function publicJwk(kid: string): Jwk {
  const { publicKey } = generateKeyPairSync('ed25519');
  return {
    ...publicKey.export({ format: 'jwk' }),
    kid,
    use: 'sig',
    alg: 'EdDSA',
    key_ops: ['verify'],
    proto_use: 'webhook-signing',
  };
}

export function senderEntry(agentUrl: string, more: Partial<SenderEntry> = {}): SenderEntry {
  return {
    agentUrl,
    auth: { scheme: 'signature' },
    edition: editionFor('3.0'),
    maxNoncesPerKey: 100_000,
    ...more,
  };
}

export const BRAND = '/.well-known/brand.json';
export const JWKS_PATH = '/.well-known/jwks.json';

/** A seller with brand.json and JWKS on a server of its own; `publish` replaces its keys. */
export interface Seller {
  readonly server: KeyServer;
  readonly sender: SenderEntry;
  readonly publish: (...keys: readonly Jwk[]) => void;
}

export async function startSeller(...keys: readonly Jwk[]): Promise<Seller> {
  const server = await startKeyServer();
  const agentUrl = `${server.origin}/mcp`;
  const publish = (...published: readonly Jwk[]): void => {
    server.serve(JWKS_PATH, { keys: published });
  };
  server.serve(BRAND, { agents: [{ url: agentUrl }] });
  publish(...keys);
  return { server, sender: senderEntry(agentUrl), publish };
}

/** A resolver with the real engine and transport, a clock that the test moves, and the alarms it raised. */
export interface Bench {
  readonly keys: KeyResolver;
  readonly alarms: Alarm[];
  readonly alarmsOf: (code: AlarmCode) => Alarm[];
  readonly now: () => number;
  readonly advance: (ms: number) => void;
}

export const START: number = Date.parse('2026-03-01T12:00:00Z');

/** What answers is waited for, however slow the machine is. Where nothing does, a test says for how long. */
const UNHURRIED = { deliveryMs: 30_000, patienceMs: 30_000, graceMs: 30_000 } as const;

export async function setup(options: Partial<KeyResolverOptions> = {}): Promise<Bench> {
  let now = START;
  const alarms: Alarm[] = [];
  const engine: CryptoEngine = await createEngine();
  const keys = createKeyResolver({
    protocols: protocolsFor(),
    engine: () => engine,
    fetch: defaultFetch(true),
    now: () => now,
    allowLoopback: true,
    raiseAlarm: (alarm) => alarms.push(alarm),
    logger: SILENT,
    ...options,
    limits: { ...UNHURRIED, ...options.limits },
  });
  onTestFinished(() => {
    keys.stop();
  });
  return {
    keys,
    alarms,
    alarmsOf: (code) => alarms.filter((alarm) => alarm.code === code),
    now: () => now,
    advance: (ms) => {
      now += ms;
    },
  };
}

export const MINUTE = 60_000;

/** For `expect.poll`: what is waited for comes soon, on a busy machine too, or never. */
export const PATIENT = { timeout: 30_000 };

const sha256Hex = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');

/** What a caller of sellers has stored of one. */
export async function declare(store: Store, agentUrl: string, declared: Declared): Promise<void> {
  await store.registrations?.run('', (rows, now) => {
    rows.save(declaredRow({ sha256Hex }, agentUrl, { ...declared, askAt: now }, now));
  });
}
