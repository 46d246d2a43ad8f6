import { describe, expect, it } from 'vitest';
import { resolveOptions } from '../../src/config/for-tests.ts';
import { createHashes } from '../../src/crypto/for-tests.ts';
import { Fault } from '../../src/index.ts';
import { readBody } from '../../src/events/for-tests.ts';
import { protocolsFor } from '../../src/for-tests.ts';
import { originOf, readStored } from '../../src/stages/for-tests.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { samplePayloads } from '../../src/testing/index.ts';

const AGENT = 'https://seller.example/mcp';
const context = { protocols: protocolsFor(), hashes: createHashes(), readBody };
const payloads = samplePayloads();
const bytes = (payload: object): Uint8Array => new TextEncoder().encode(JSON.stringify(payload));

describe('readStored', () => {
  it.each([undefined, 'tool', 'agent'] as const)(
    'reads both transports with any known format: %s',
    (format) => {
      const origin = { agentUrl: AGENT, ...(format && { format }) };
      const tool = payloads.tool('completed');
      const agent = payloads.agent('completed', { idempotency_key: 'agent-event-of-16-characters' });
      expect(
        readStored(origin, { key: tool.idempotency_key, body: bytes(tool) }, context).event.transport,
      ).toBe('tool');
      const { event, terminal } = readStored(
        origin,
        { key: 'agent-event-of-16-characters', body: bytes(agent) },
        context,
      );
      expect([event.transport, event.sender, terminal]).toEqual(['agent', AGENT, true]);
    },
  );

  it('derives again a key that was derived from the bytes', () => {
    const { idempotency_key: _, ...agent } = payloads.agent('working');
    const body = bytes(agent);
    const key = context.hashes.sha256Hex(body);
    expect(readStored({ agentUrl: AGENT }, { key, body }, context).event).toMatchObject({
      idempotencyKey: key,
      idempotencyKeySource: 'derived',
    });
  });

  it('throws a Fault for an unreadable body or another event', () => {
    const tool = payloads.tool('completed');
    expect(() =>
      readStored({ agentUrl: AGENT }, { key: 'another-key-of-the-seller', body: bytes(tool) }, context),
    ).toThrow(Fault);
    expect(() => readStored({ agentUrl: AGENT }, { key: 'k', body: new Uint8Array([123]) }, context)).toThrow(
      /cannot be read/,
    );
  });
});

describe('originOf', () => {
  const given = (senders: Parameters<typeof resolveOptions>[0]['senders']) =>
    resolveOptions({
      publicUrl: 'https://buyer.example/x',
      senders,
      store: memoryStore(),
      handlers: { other: () => {} },
    });

  it('is the configured sender with its format, else its agent URL alone', () => {
    const config = given([{ agentUrl: AGENT, format: 'agent' }]);
    expect(originOf(config, AGENT)).toMatchObject({ agentUrl: AGENT, format: 'agent' });
    expect(originOf(config, 'https://gone.example')).toEqual({ agentUrl: 'https://gone.example' });
    expect(
      originOf(
        given(() => []),
        AGENT,
      ),
    ).toEqual({ agentUrl: AGENT });
  });
});
