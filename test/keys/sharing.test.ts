import { afterEach, expect, test, vi } from 'vitest';
import { requestsMayShare } from '../../src/keys/sharing.ts';

afterEach(() => {
  vi.unstubAllGlobals();
});

test('requests may wait for each other, but not on workerd', () => {
  expect(requestsMayShare()).toBe(true);
  vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' });
  expect(requestsMayShare()).toBe(false);
  vi.stubGlobal('navigator', undefined);
  expect(requestsMayShare()).toBe(true);
});
