import { describe, expect, it } from 'vitest';
import { resolveOptions } from '../src/config/for-tests.ts';
import { ConfigError, createReceiver, type Durability, Fault, type ReceiverOptions } from '../src/index.ts';
import { createStartup, type Startup } from '../src/for-tests.ts';
import { memoryStore } from '../src/stores/memory.ts';
import { gate } from './receiver/setup.ts';
import { onWorkerd } from './support/workerd.ts';
import { SILENT_LOGGER } from './support/silent-logger.ts';

interface Bench {
  readonly startup: Startup<string>;
  readonly opens: () => number;
}

/** A startup on a store whose `open` waits for what it is told to, the n-th time for the n-th. */
function bench(...waits: readonly (() => Promise<void>)[]): Bench {
  let opens = 0;
  const store = {
    ...memoryStore(),
    open: async () => {
      opens += 1;
      await waits[opens - 1]?.();
    },
  };
  const options: ReceiverOptions = {
    publicUrl: 'https://buyer.example/hook',
    senders: [{ agentUrl: 'https://seller.example/mcp' }],
    store,
    durability: { require: 'process' },
    handlers: { other: () => {} },
  };
  const keys = {
    find: () => Promise.reject(new Error('not asked')),
    findReplaced: () => Promise.reject(new Error('not asked')),
    freshUntil: async () => undefined,
    whose: () => undefined,
    revocation: () => Promise.reject(new Error('not asked')),
    warm: () => Promise.resolve(),
    stop: () => {},
    resume: () => {},
  };
  const config = resolveOptions(options);
  const load = () => Promise.resolve('loaded');
  const startup = createStartup({
    config,
    options,
    keys,
    raiseAlarm: () => {},
    outages: { store() {}, handler() {} },
    storeHold: { take() {}, drop() {} },
    isStopped: () => false,
    load,
  });
  return { startup, opens: () => opens };
}

const never = (): Promise<void> => new Promise(() => {});

describe('createStartup', () => {
  it('shares one check among concurrent deliveries', async () => {
    const { opened, open } = gate();
    const { startup, opens } = bench(() => opened);
    const all = Promise.all([startup.ready(), startup.passed(), startup.check()]);
    open();
    expect(await all).toEqual(['loaded', 'loaded', 'loaded']);
    expect(opens()).toBe(1);
  });

  it('on workerd is not blocked by a delivery that never ends', async () => {
    onWorkerd();
    const { startup, opens } = bench(never);
    void startup.ready();
    expect(await startup.ready()).toBe('loaded');
    expect(await startup.ready()).toBe('loaded');
    expect(opens()).toBe(2);
  });

  it.each([false, true])('checks again after a failure, on workerd: %s', async (isWorkerd) => {
    if (isWorkerd) onWorkerd();
    const failing = (): Promise<void> => Promise.reject(new ConfigError('no such table. Run migrate.'));
    const { startup, opens } = bench(failing, failing);
    await expect(startup.check()).rejects.toThrow(ConfigError);
    await expect(startup.ready()).rejects.toBeInstanceOf(Fault);
    expect(await startup.ready()).toBe('loaded');
    expect(opens()).toBe(3);
  });
});

describe('ready: durability.declared counts only where the settings cannot be read', () => {
  const ready = (read: Durability | 'unknown', more: Partial<ReceiverOptions>): Promise<unknown> =>
    createReceiver({
      publicUrl: 'https://buyer.example/hook',
      senders: [{ agentUrl: 'https://seller.example/mcp', pins: [{ kid: 'a', kty: 'OKP' }] }],
      store: { ...memoryStore(), durability: () => Promise.resolve(read) },
      handlers: { other: () => {} },
      logger: SILENT_LOGGER,
      ...more,
    }).ready();

  it.each<[Durability | 'unknown', Partial<ReceiverOptions>]>([
    ['unknown', { durability: { declared: 'disk' } }],
    ['unknown', { durability: { declared: 'failover' } }],
    ['unknown', { durability: { declared: 'process', require: 'process' } }],
    ['disk', { durability: { declared: 'process' } }],
    ['disk', {}],
  ])('read %s, %o: taken', async (read, more) => {
    await expect(ready(read, more)).resolves.toHaveProperty('storeId');
  });

  it.each<[Durability | 'unknown', Partial<ReceiverOptions>, RegExp]>([
    ['unknown', {}, /cannot be read \(durability: \{ declared: … \} if you know them\)/],
    [
      'unknown',
      { durability: { declared: 'process' } },
      /durability: \{ require: 'disk' \}.*keeps 'process'/,
    ],
    ['process', { durability: { declared: 'failover' } }, /keeps 'process'/],
    ['disk', { durability: { require: 'failover', declared: 'failover' } }, /keeps 'disk'/],
  ])('read %s, %o: a ConfigError', async (read, more, message) => {
    await expect(ready(read, more)).rejects.toThrow(ConfigError);
    await expect(ready(read, more)).rejects.toThrow(message);
  });

  it('an unreachable store is a Fault, so that a start can be repeated', async () => {
    const away = { ...memoryStore(), open: () => Promise.reject(new Fault('store_unavailable', 'away')) };
    await expect(ready('disk', { store: away, advanced: { startMs: 0 } })).rejects.toMatchObject({
      name: 'Fault',
      code: 'store_unavailable',
    });
  });
});
