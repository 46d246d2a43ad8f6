import './scripts/needs-node.js';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { DurationsWriter } from './test/support/durations.ts';
import { filesOf, groupOf, selectionOf } from './test/support/groups.ts';
import { LongestFirst } from './test/support/longest-first.ts';

const { form, group } = selectionOf(process.env);
const files = filesOf(form, group);
/** Where a file runs: `unit` and `stores` share processes. */
const projectOf = (file: string): string =>
  ['unit', 'stores'].find((shared) => shared === groupOf(file)) ?? 'apart';
const paths = (project: string): string[] =>
  files.filter((file) => projectOf(file) === project).map((file) => join('test', file));

export default defineConfig({
  test: {
    projects: [
      // Begun in this order: a process goes on to the next file only where that is of its own project.
      { extends: true, test: { name: 'apart', include: paths('apart') } },
      // A process for each file is half of what unit tests cost. They leave nothing behind for the next, nor do stores.
      { extends: true, test: { name: 'stores', include: paths('stores'), isolate: false } },
      { extends: true, test: { name: 'unit', include: paths('unit'), isolate: false } },
    ].filter(({ test }) => test.include.length > 0),
    globalSetup: ['test/support/global-setup.ts'],
    // vitest leaves one core to itself, which on two cores is one file at a time. Much of what these files do is waiting:
    // for servers, npm, locks, other processes.
    maxWorkers: availableParallelism() + 1,
    ...(process.env['TEST_DURATIONS'] === 'write' &&
      form !== 'long' && { reporters: ['default', new DurationsWriter(form)] }),
    sequence: { sequencer: LongestFirst },
    testTimeout: 180_000,
    // Servers are started in hooks, and on a fresh machine installed, one after the other.
    hookTimeout: 300_000,
    // What is polled for comes when it comes; a slow machine is no failure.
    expect: { poll: { timeout: 30_000 } },
  },
});
