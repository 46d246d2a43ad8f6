import { describe, expect, it } from 'vitest';
import { resolveOptions } from '../../src/config/for-tests.ts';
import { ConfigError } from '../../src/index.ts';
import { memoryStore } from '../../src/stores/memory.ts';

const read = (given: object): string =>
  resolveOptions({
    publicUrl: 'https://buyer.example/webhooks',
    senders: [{ agentUrl: 'https://seller.example/mcp' }],
    store: memoryStore(),
    handlers: { other() {} },
    ...given,
  }).verification;

describe('options: verification', () => {
  it('verification is auto by default', () => {
    expect(read({})).toBe('auto');
    for (const verification of ['main', 'pool', 'auto']) expect(read({ verification })).toBe(verification);
  });

  it.each([
    [{ verification: 'worker' }, /^verification: "worker" is not one of main, pool, auto/],
    [{ verification: true }, /^verification: /],
    [{ sodium: true }, /^options: sodium is not known/],
  ])('refuses %o', (given, message) => {
    expect(() => read(given)).toThrow(ConfigError);
    expect(() => read(given)).toThrow(message);
  });
});
