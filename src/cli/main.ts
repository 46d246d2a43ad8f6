#!/usr/bin/env node
// The program `proto-webhooks`: refuses a Node that is too old, then runs a command.
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { tooOld } from './oldest-node.ts';

/** True if this file was started as the program, also through a symbolic link. False if it was only imported. */
function isStarted(): boolean {
  const started = process.argv[1];
  return started !== undefined && realpathSync(started) === fileURLToPath(import.meta.url);
}

async function run(args: readonly string[]): Promise<number> {
  const message = tooOld(process.versions.node);
  if (message === undefined) return (await import('./program.ts')).main(args, process);
  process.stderr.write(`proto-webhooks: ${message}\n`);
  if (args.includes('--json')) {
    process.stdout.write(`${JSON.stringify({ error: { code: 'usage', message } }, undefined, 2)}\n`);
  }
  return 2;
}

if (isStarted()) {
  // EPIPE means that the reader of the output has ended early (`| head`), which is no fault.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  process.exitCode = await run(process.argv.slice(2));
}
