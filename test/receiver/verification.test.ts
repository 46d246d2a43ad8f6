import nodeCrypto from 'node:crypto';
import nodeModule, { createRequire } from 'node:module';
import os from 'node:os';
import { ed25519 } from '@noble/curves/ed25519.js';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Sodium } from '../../src/crypto/for-tests.ts';
import { sodiumNative } from '../crypto/sodium-native.ts';
import { webhookHandler } from '../../src/adapters/lambda.ts';
import {
  gate,
  payloads,
  said,
  type Signed,
  testReceiver,
  type TestReceiver,
  type TestReceiverOptions,
} from './setup.ts';

const ACCEPTED = 'accepted 200';

// Whatever this machine has: with one processor there is no pool to choose.
beforeEach(() => {
  const processors = vi.spyOn(os, 'availableParallelism').mockReturnValue(2);
  return () => processors.mockRestore();
});

/** Where each verification since the last look was done. */
function watch(): () => readonly ('main' | 'pool')[] {
  const verify = vi.spyOn(nodeCrypto, 'verify');
  onTestFinished(() => verify.mockRestore());
  return () => verify.mock.calls.splice(0).map((given) => (given.length > 4 ? 'pool' : 'main'));
}

interface Held {
  readonly handler: () => Promise<void>;
  readonly entered: Promise<void>;
  readonly go: () => void;
}

/** A handler that does not settle until it is let go. */
function heldHandler(): Held {
  const [entrance, exit] = [gate(), gate()];
  const handler = (): Promise<void> => {
    entrance.open();
    return exit.opened;
  };
  return { handler, entered: entrance.opened, go: exit.open };
}

const completed = (): object => payloads.tool('completed');

describe('verification', () => {
  it("is 'auto' by default: the main thread for a single delivery, the pool while another is in flight", async () => {
    leaveSodiumAlone();
    const { handler, entered, go } = heldHandler();
    const { receiver, deliver } = await testReceiver({ handler });
    await receiver.ready();
    // The engine's self-test counts as a verification of its turn of the event loop.
    await new Promise((resolve) => void setImmediate(resolve));
    // A pool that gives nothing back for 5 ms is helped by the main thread: on a busy machine that is soon.
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const places = watch();
    const first = deliver(completed());
    await entered;
    expect(places()).toEqual(['main']);
    const second = deliver(completed());
    // `expect.poll` would move the clock, and the main thread would help.
    let where = places();
    for (; where.length === 0; where = places()) await new Promise((resolve) => void setImmediate(resolve));
    expect(where).toEqual(['pool']);
    go();
    expect([said(await first), said(await second)]).toEqual([ACCEPTED, ACCEPTED]);
    expect(said(await deliver(completed()))).toBe(ACCEPTED);
    expect(places()).toEqual(['main']);
    await receiver.stop();
  });

  it.each(['main', 'pool'] as const)(
    "'%s' uses only that thread, with the same answers",
    async (verification) => {
      leaveSodiumAlone();
      const { handler, entered, go } = heldHandler();
      const { receiver, deliver, sign, send } = await testReceiver({ handler, verification });
      await receiver.ready();
      const places = watch();
      const first = deliver(completed());
      await entered;
      const signed = await sign(completed());
      const signature = new Headers(signed.headers).get('signature') ?? '';
      const spoilt = signature.replace(/^sig1=:(.)/, (_, char) => `sig1=:${char === 'A' ? 'B' : 'A'}`);
      const forged = { ...signed, headers: { ...signed.headers, Signature: spoilt } };
      expect(said(await send(forged))).toBe('refused webhook_signature_invalid 401');
      const second = send(signed);
      go();
      expect([said(await first), said(await second)]).toEqual([ACCEPTED, ACCEPTED]);
      expect(new Set(places())).toEqual(new Set([verification]));
      await receiver.stop();
    },
  );
});

describe("verification 'auto': where it is done, as deliveries come", () => {
  /** Deliveries that are signed, so that whoever sends them waits for nothing else. */
  async function signedFor({ deliver, sign }: TestReceiver, count: number): Promise<readonly Signed[]> {
    // Chooses the engine.
    await deliver(completed());
    const signed = await Promise.all(Array.from({ length: count }, () => sign(completed())));
    await new Promise((resolve) => void setImmediate(resolve));
    // A pool that gives nothing back for 5 ms is helped by the main thread: on a busy machine that is soon.
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    return signed;
  }

  const times = <T>(count: number, value: T): readonly T[] => Array.from({ length: count }, () => value);

  it('one after the other, each awaited: the main thread, however fast they come', async () => {
    leaveSodiumAlone();
    const to = await testReceiver();
    const deliveries = await signedFor(to, 20);
    const places = watch();
    for (const delivery of deliveries) expect(said(await to.send(delivery))).toBe(ACCEPTED);
    expect(places()).toEqual(times(20, 'main'));
    await to.receiver.stop();
  });

  it('one after the other on Lambda: the main thread', async () => {
    leaveSodiumAlone();
    const to = await testReceiver();
    const deliveries = await signedFor(to, 20);
    const handler = webhookHandler(to.receiver);
    const places = watch();
    for (const { body, headers } of deliveries) {
      const path = '/webhooks/proto';
      const text = { body: new TextDecoder().decode(body), isBase64Encoded: false };
      const event = { version: '2.0', rawPath: path, headers, ...text, requestContext: { http: POST } };
      expect((await handler(event)).statusCode).toBe(200);
    }
    expect(places()).toEqual(times(20, 'main'));
    await to.receiver.stop();
  });

  it('at once, none awaited: the pool for all but the first', async () => {
    leaveSodiumAlone();
    const to = await testReceiver();
    const deliveries = await signedFor(to, 5);
    const places = watch();
    const outcomes = await Promise.all(deliveries.map((delivery) => to.send(delivery)));
    expect(outcomes.map(said)).toEqual(times(5, ACCEPTED));
    expect(places()).toEqual(['main', ...times(4, 'pool')]);
    await to.receiver.stop();
  });

  it('by a door, in one turn of the event loop: the pool for all but the first, though each is over before the next', async () => {
    leaveSodiumAlone();
    const { receiver, ...to } = await testReceiver();
    const deliveries = await signedFor({ receiver, ...to }, 6);
    const places = watch();
    const open = async ({ body, headers }: Signed): Promise<string> => {
      const ticket = await receiver.open(headers);
      if (ticket.kind !== 'ticket') return ticket.kind;
      ticket.add(body);
      return said(await ticket.end());
    };
    const [alone, ...together] = deliveries;
    expect(await open(alone as Signed)).toBe(ACCEPTED);
    await new Promise((resolve) => void setImmediate(resolve));
    expect(places()).toEqual(['main']);
    expect(await Promise.all(together.map(open))).toEqual(times(5, ACCEPTED));
    expect(places()).toEqual(['main', ...times(4, 'pool')]);
    await receiver.stop();
  });
});

const POST = { method: 'POST' };

const SODIUM = 'PROTO_WEBHOOKS_SODIUM';
type Detached = Sodium['crypto_sign_verify_detached'];
const require = createRequire(import.meta.url);

/** Without it, whatever is installed. */
function leaveSodiumAlone(): void {
  vi.stubEnv(SODIUM, '0');
  onTestFinished(() => void vi.unstubAllEnvs());
}

const outOfMemory: Detached = () => {
  throw new Error('out of memory');
};

/** How often libsodium was asked since the last look. */
function watchSodium(verify?: Detached): () => number {
  const asked = vi.spyOn(sodiumNative, 'crypto_sign_verify_detached');
  if (verify) asked.mockImplementation(verify);
  onTestFinished(() => asked.mockRestore());
  return () => asked.mock.calls.splice(0).length;
}

/** How often anybody resolves `sodium-native`; where it is missing, that fails. */
function watchResolving(isMissing = false): () => number {
  const modules = nodeModule as unknown as Record<'_resolveFilename', (...given: unknown[]) => string>;
  const resolve = Reflect.get(modules, '_resolveFilename');
  let asked = 0;
  const resolving = vi.spyOn(modules, '_resolveFilename').mockImplementation((name, ...more) => {
    if (name !== 'sodium-native') return resolve.call(modules, name, ...more);
    asked += 1;
    return resolve.call(modules, isMissing ? 'sodium-native-that-is-missing' : name, ...more);
  });
  onTestFinished(() => resolving.mockRestore());
  return () => asked;
}

async function ready(options: TestReceiverOptions = {}): Promise<TestReceiver> {
  const at = await testReceiver(options);
  onTestFinished(() => at.receiver.stop());
  await at.receiver.ready();
  return at;
}

const unusable = ({ alarms }: TestReceiver): readonly string[] =>
  alarms.flatMap(({ code, message }) => (code === 'sodium_unusable' ? message : []));

describe('sodium-native', () => {
  it('verifies Ed25519 where it is installed, in the main thread, also while others are in flight', async () => {
    const { handler, entered, go } = heldHandler();
    const asked = watchSodium();
    const at = await ready({ handler });
    // The questions on which builds part.
    expect(asked()).toBe(3);
    const places = watch();
    const first = at.deliver(completed());
    await entered;
    const second = at.deliver(completed());
    await expect.poll(asked).toBe(1);
    go();
    expect([said(await first), said(await second)]).toEqual([ACCEPTED, ACCEPTED]);
    expect([places(), unusable(at)]).toEqual([[], []]);
  });

  it('is not looked for where PROTO_WEBHOOKS_SODIUM is 0', async () => {
    leaveSodiumAlone();
    const [resolved, asked] = [watchResolving(), watchSodium()];
    const at = await ready();
    expect(said(await at.deliver(completed()))).toBe(ACCEPTED);
    expect([resolved(), asked(), unusable(at)]).toEqual([0, 0, []]);
  });

  it('has no part where the pool is asked for', async () => {
    const [resolved, asked] = [watchResolving(), watchSodium()];
    const at = await ready({ verification: 'pool' });
    expect(said(await at.deliver(completed()))).toBe(ACCEPTED);
    expect([resolved(), asked(), unusable(at)]).toEqual([0, 0, []]);
  });

  it('may be missing', async () => {
    const [resolved, asked] = [watchResolving(true), watchSodium()];
    const at = await ready();
    const places = watch();
    expect(said(await at.deliver(completed()))).toBe(ACCEPTED);
    expect([resolved() > 0, asked(), places().length, unusable(at)]).toEqual([true, 0, 1, []]);
  });

  it('that throws once it is in use is a fault of ours: 503, never 401, and heard', async () => {
    const at = await ready();
    const signed = await at.sign(completed());
    let verify = outOfMemory;
    const asked = watchSodium((...given) => verify(...given));
    expect(said(await at.send(signed))).toBe('unavailable misconfigured 503');
    expect(at.alarms.map(({ code, message }) => [code, message])).toContainEqual([
      'misconfigured',
      expect.stringContaining('out of memory'),
    ]);
    expect(asked()).toBe(1);
    verify = (...[signature, message, key]) => ed25519.verify(signature, message, key);
    expect(said(await at.send(signed))).toBe(ACCEPTED);
  });

  it.each<[string, unknown]>([
    ['-1', -1],
    ['0', 0],
    ['nothing', undefined],
    ['a promise', Promise.resolve(true)],
  ])('that answers %s once it is in use has given no verdict', async (_, answer) => {
    const at = await ready();
    const signed = await at.sign(completed());
    watchSodium((() => answer) as Detached);
    expect(said(await at.send(signed))).toBe('unavailable misconfigured 503');
    expect(at.alarms.map(({ message }) => message)).toContainEqual(expect.stringContaining('no verdict'));
  });

  const OTHER_VERDICTS = 'does not give the verdicts on Ed25519 signatures';
  it.each<[string, Detached, string]>([
    [
      'gives other verdicts',
      (...[signature, message, key]) => ed25519.verify(signature, message, key),
      OTHER_VERDICTS,
    ],
    ['accepts everything', () => true, OTHER_VERDICTS],
    ['throws', outOfMemory, 'out of memory'],
  ])('that %s is not used, and ready() says so', async (_, verify, reason) => {
    const asked = watchSodium(verify);
    const at = await ready();
    expect(unusable(at)).toEqual([expect.stringContaining(reason)]);
    asked();
    const places = watch();
    expect(said(await at.deliver(completed()))).toBe(ACCEPTED);
    expect([asked(), places().length]).toEqual([0, 1]);
  });

  it.each<[string, () => unknown, string]>([
    [
      'cannot be loaded',
      () => {
        throw new Error('no binary for this platform');
      },
      'no binary for this platform',
    ],
    ['is something else', () => undefined, 'crypto_sign_verify_detached'],
    ['lacks the function', () => ({}), 'crypto_sign_verify_detached'],
  ])('that %s is not used, and ready() says so', async (_, load, reason) => {
    const loaded = require.cache[require.resolve('sodium-native')];
    if (!loaded) throw new Error('sodium-native is not loaded');
    const { exports } = loaded;
    Object.defineProperty(loaded, 'exports', { configurable: true, get: load });
    onTestFinished(() => {
      Object.defineProperty(loaded, 'exports', { configurable: true, writable: true, value: exports });
    });
    const at = await ready();
    expect(unusable(at)).toEqual([expect.stringContaining(reason)]);
    expect(said(await at.deliver(completed()))).toBe(ACCEPTED);
  });
});
