import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import type { ReceiverOptions } from '../../src/index.ts';
import { isAbortSignal, isBytes, isError, isPlainObject, isThenable } from '../../src/for-tests.ts';
import { AGENT, payloads, said, sellerKey, testReceiver } from './setup.ts';

/** Jest and other test runners give each test file a context of its own: its constructors are not the library's. */
const foreign = (code: string): unknown => runInNewContext(code, { AbortController });
const foreignBytes = (bytes: Uint8Array): Uint8Array =>
  (foreign('(list) => Uint8Array.from(list)') as (list: readonly number[]) => Uint8Array)([...bytes]);

describe('kinds of values of another realm', () => {
  it.each([
    [
      'bytes',
      isBytes,
      'new Uint8Array(2)',
      ['new Uint16Array(2)', 'new ArrayBuffer(2)', '"ab"', '({ length: 1 })'],
    ],
    ['errors', isError, 'new TypeError("no")', ['({ message: "no" })', 'undefined', '"no"']],
    ['promises', isThenable, 'Promise.resolve()', ['[]', 'undefined', 'null', '({ then: 1 })']],
    ['signals', isAbortSignal, 'new AbortController().signal', ['({ aborted: true })', 'null', '1']],
    [
      'plain objects',
      isPlainObject,
      '({ a: 1 })',
      ['new Date()', 'new Map()', '[]', 'null', '(class A {}, new (class B {})())'],
    ],
  ] as const)('%s are known, and nothing else', (_what, is, code, others) => {
    expect(is(foreign(code))).toBe(true);
    for (const other of others) expect(is(foreign(other)), other).toBe(false);
  });

  it('is decided by the runtime, not by what a value says of itself', () => {
    expect(
      isBytes(Object.defineProperty(new Uint16Array(2), Symbol.toStringTag, { value: 'Uint8Array' })),
    ).toBe(false);
    const trap = new Proxy(
      {},
      {
        getPrototypeOf: () => {
          throw new Error('trapped');
        },
      },
    );
    expect(isError(trap)).toBe(false);
  });
});

describe('a receiver and values of another realm', () => {
  const given = async (options: Partial<ReceiverOptions> = {}) => {
    const made = await testReceiver(options);
    const signed = await made.sign(payloads.tool('completed'));
    return { ...made, signed, body: foreignBytes(signed.body) };
  };

  it('takes a body', async () => {
    const { receiver, signed, body, seen } = await given();
    expect(body instanceof Uint8Array).toBe(false);
    expect(said(await receiver.verifyAndDispatch(body, signed.headers))).toBe('accepted 200');
    expect(seen).toHaveLength(1);
  });

  it('takes a body in pieces', async () => {
    const { receiver, signed, body } = await given();
    const ticket = await receiver.open(signed.headers);
    if (ticket.kind !== 'ticket') throw new Error(said(ticket));
    expect(ticket.add(body)).toBe(true);
    expect(said(await ticket.end())).toBe('accepted 200');
  });

  it('waits for the senders that it is promised', async () => {
    const senders = [{ agentUrl: AGENT, pins: [(await sellerKey()).publicJwk] }];
    const promised = foreign('(value) => Promise.resolve(value)') as (
      value: unknown,
    ) => Promise<typeof senders>;
    const { send, signed } = await given({ senders: () => promised(senders) });
    expect(said(await send(signed))).toBe('accepted 200');
  });

  it('knows a permanent error of another copy of the package', async () => {
    const thrown = foreign('Object.assign(new Error("no such order"), { code: "permanent_error" })');
    const { send, signed, alarms } = await given({
      handlers: {
        other: () => {
          throw thrown;
        },
      },
    });
    expect(said(await send(signed))).toBe('accepted 200');
    expect(alarms).toMatchObject([
      { code: 'dead', message: 'an event is DEAD and kept for you: PermanentError' },
    ]);
  });
});
