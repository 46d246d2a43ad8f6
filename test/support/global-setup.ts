import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { endSharedMariadb } from './shared-mariadb.ts';
import { endSharedPostgres } from './shared-postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Folder of what test files share in one run (`shared-postgres.ts`, `shared-mariadb.ts`). */
    readonly shared: string;
  }
}

const folder = join(tmpdir(), `proto-webhooks-run-${process.pid}`);

/** Nothing is started before a test asks for it: a run without such tests needs no server. */
export function setup(project: TestProject): void {
  mkdirSync(folder, { recursive: true });
  project.provide('shared', folder);
}

export function teardown(): void {
  endSharedMariadb(folder);
  endSharedPostgres(folder);
  rmSync(folder, { recursive: true, force: true });
}
