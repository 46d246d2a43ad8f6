import { describe, expect, it } from 'vitest';
import { protocolsFor } from '../../src/for-tests.ts';
import { createHashes } from '../../src/crypto/for-tests.ts';
import { readBody } from '../../src/events/for-tests.ts';
import { terminalHash } from '../../src/stages/for-tests.ts';
import { payloads } from '../receiver/setup.ts';

const hashes = createHashes();

function hashOf(payload: object): string {
  const bytes = new TextEncoder().encode(JSON.stringify(payload));
  const reading = readBody(bytes, { protocols: protocolsFor(), hash: (raw) => hashes.sha256Hex(raw) });
  if (!reading.ok || reading.event.kind !== 'task') throw new Error('a status of a task');
  return terminalHash(reading.event, hashes);
}

const KEY = 'another-key-of-the-seller';

describe('the hash of a terminal status', () => {
  const payload = payloads.tool('completed');

  it('covers status and data, not other members or their order', () => {
    const { status, result, task_id, ...rest } = payload;
    const other = {
      result: Object.fromEntries(Object.entries(result as object).toReversed()),
      task_id,
      status,
      ...rest,
      idempotency_key: KEY,
      timestamp: '2026-01-01T00:00:00Z',
      message: 'said otherwise',
    };
    expect(hashOf(other)).toBe(hashOf(payload));
    expect(hashOf({ ...payload, status: 'failed' })).not.toBe(hashOf(payload));
    expect(hashOf({ ...payload, result: { media_buy_id: 'mb_2' } })).not.toBe(hashOf(payload));
  });

  it.each([undefined, null])(
    'covers the payload without keys, timestamps and metadata if there is no data (%s)',
    (result) => {
      const bare = { ...payload, status: 'canceled', result };
      const again = { ...bare, idempotency_key: KEY, timestamp: '2026-01-01T00:00:00Z' };
      expect(hashOf(again)).toBe(hashOf(bare));
      expect(hashOf({ ...again, message: 'said otherwise' })).not.toBe(hashOf(bare));
    },
  );

  it('excludes key, time and metadata of an agent-transport envelope too', () => {
    const task = (key: string, timestamp: string, text: string): object => ({
      id: 'task_1',
      kind: 'task',
      status: { state: 'failed', timestamp, message: { role: 'agent', parts: [{ kind: 'text', text }] } },
      metadata: { idempotency_key: key, attempt: key },
    });
    const one = hashOf(task('key-0001-of-the-seller', '2026-01-01T00:00:00Z', 'no'));
    expect(hashOf(task('key-0002-of-the-seller', '2026-01-02T00:00:00Z', 'no'))).toBe(one);
    expect(hashOf(task('key-0002-of-the-seller', '2026-01-02T00:00:00Z', 'never'))).not.toBe(one);
  });
});
