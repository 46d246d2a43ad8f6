import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // What is polled for comes when it comes; a slow machine is no failure.
    expect: { poll: { timeout: 30_000 } },
  },
});
