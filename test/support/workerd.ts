import { onTestFinished, vi } from 'vitest';

/** To the end of the test no request may wait for another one's promise (`requestsMayShare`). */
export function onWorkerd(): void {
  vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' });
  onTestFinished(() => {
    vi.unstubAllGlobals();
  });
}
