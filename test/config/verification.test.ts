import { describe, expect, it } from 'vitest';
import { verificationOf } from '../../src/config/parts.ts';
import { ConfigError } from '../../src/errors.ts';
import type { ReceiverOptions } from '../../src/options.ts';
import { sodiumNative } from '../crypto/sodium-native.ts';

const read = (given: Record<string, unknown>): string => verificationOf(given as unknown as ReceiverOptions);

describe('options: verification and sodium', () => {
  it('verification is auto unless it is said', () => {
    expect(read({})).toBe('auto');
    for (const verification of ['main', 'pool', 'auto']) expect(read({ verification })).toBe(verification);
  });

  it('sodium leaves it as it is', () => {
    expect(read({ sodium: sodiumNative })).toBe('auto');
    expect(read({ sodium: sodiumNative, verification: 'main' })).toBe('main');
  });

  it.each([
    [{ verification: 'worker' }, /^verification: "worker" is not one of main, pool, auto/],
    [{ verification: true }, /^verification: /],
    [{ sodium: true }, /^sodium: .* import sodium from 'sodium-native'/],
    [{ sodium: null }, /^sodium: /],
    [{ sodium: {} }, /^sodium: /],
    [{ sodium: sodiumNative, verification: 'pool' }, /^sodium: works in the main thread/],
  ])('refuses %o', (given, message) => {
    expect(() => read(given)).toThrow(ConfigError);
    expect(() => read(given)).toThrow(message);
  });
});
