import nodeCrypto from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ConfigError } from '../../src/index.ts';
import { sodiumNative } from '../crypto/sodium-native.ts';
import { gate, testReceiver, payloads, said } from './setup.ts';

const ACCEPTED = 'accepted 200';

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
    await expect.poll(places).toEqual(['pool']);
    go();
    expect([said(await first), said(await second)]).toEqual([ACCEPTED, ACCEPTED]);
    expect(said(await deliver(completed()))).toBe(ACCEPTED);
    expect(places()).toEqual(['main']);
    await receiver.stop();
  });

  it.each(['main', 'pool'] as const)(
    "'%s' uses only that thread, with the same answers",
    async (verification) => {
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

describe('sodium', () => {
  it('verifies Ed25519, in the main thread, also while others are in flight', async () => {
    let asked = 0;
    const sodium = {
      crypto_sign_verify_detached(...given: Parameters<typeof sodiumNative.crypto_sign_verify_detached>) {
        asked += 1;
        return sodiumNative.crypto_sign_verify_detached(...given);
      },
    };
    const { handler, entered, go } = heldHandler();
    const { receiver, deliver } = await testReceiver({ handler, sodium });
    await receiver.ready();
    asked = 0;
    const places = watch();
    const first = deliver(completed());
    await entered;
    const second = deliver(completed());
    await expect.poll(() => asked).toBe(2);
    go();
    expect([said(await first), said(await second)]).toEqual([ACCEPTED, ACCEPTED]);
    expect(places()).toEqual([]);
    await receiver.stop();
  });

  it('that gives other verdicts is refused by ready(), not by a delivery', async () => {
    const sodium = {
      crypto_sign_verify_detached: (signature: Uint8Array, message: Uint8Array, key: Uint8Array) =>
        ed25519.verify(signature, message, key),
    };
    const { receiver, deliver } = await testReceiver({ sodium });
    await expect(receiver.ready()).rejects.toThrow(ConfigError);
    await expect(receiver.ready()).rejects.toThrow(/^sodium: /);
    expect(said(await deliver(completed()))).toBe('unavailable misconfigured 503');
    await receiver.stop();
  });
});
