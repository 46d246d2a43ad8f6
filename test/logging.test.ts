import { expect, it, vi } from 'vitest';
import { createReceiver } from '../src/receiver.ts';
import { signDelivery } from '../src/sender/sign.ts';
import { memoryStore } from '../src/stores/memory.ts';
import { AGENT, payloads, sellerKey, URL_GIVEN } from './receiver/setup.ts';

const LEVELS = ['debug', 'info', 'log', 'warn', 'error'] as const;

it('without a logger a handler’s exception goes to the console, and what is usual does not', async () => {
  const { publicJwk, privateJwk } = await sellerKey();
  const lines: string[] = [];
  const spies = LEVELS.map((level) =>
    vi.spyOn(console, level).mockImplementation((message: unknown, fields: unknown) => {
      const { err } = fields as { err?: Error };
      lines.push(`${level} ${String(message)}: ${err?.message}`);
    }),
  );
  try {
    const receiver = createReceiver({
      publicUrl: URL_GIVEN,
      senders: [{ agentUrl: AGENT, pins: [publicJwk] }],
      store: memoryStore(),
      requireDurability: 'process',
      handlers: {
        completed: () => {},
        other: () => Promise.reject(new Error('the ad server is away')),
      },
    });
    for (const status of ['completed', 'failed'] as const) {
      const signed = await signDelivery({ url: URL_GIVEN, body: payloads.tool(status), key: privateJwk });
      await receiver.verifyAndDispatch(signed.body, signed.headers);
    }
    await receiver.stop();
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  expect(lines.filter((line) => line.includes('the ad server is away'))).toHaveLength(1);
  expect(lines.every((line) => /^(?:warn|error) proto-webhooks: /.test(line))).toBe(true);
});
