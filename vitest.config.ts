import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { DurationsWriter } from './test/support/durations.ts';
import { included } from './test/support/groups.ts';
import { LongestFirst } from './test/support/longest-first.ts';

const group = process.env['TEST_GROUP'];

export default defineConfig({
  test: {
    include: included(group),
    // A process for each file is half of what unit tests cost. They leave nothing behind for the next.
    isolate: group !== 'unit',
    globalSetup: ['test/support/global-setup.ts'],
    // vitest leaves one core to itself, which on two cores is one file at a time. Much of what these files do is waiting:
    // for servers, npm, locks, other processes.
    maxWorkers: availableParallelism() + 1,
    ...(process.env['TEST_DURATIONS'] === 'write' && { reporters: ['default', new DurationsWriter()] }),
    sequence: { sequencer: LongestFirst },
    testTimeout: 180_000,
    // Servers are started in hooks, and on a fresh machine installed, one after the other.
    hookTimeout: 300_000,
    // What is polled for comes when it comes; a slow machine is no failure.
    expect: { poll: { timeout: 30_000 } },
  },
});
