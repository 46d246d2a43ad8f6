import { ENGINE_CHECKS } from './engines.ts';
import { INBOX_CHECKS, SQLITE_CHECKS } from './inbox.ts';
import type { Check, Checks, Library, Surroundings } from './kit.ts';
import { NODE_CHECKS } from './node-door.ts';
import { PIPELINE_CHECKS } from './pipeline.ts';

/** One check's end; `error` where it failed. */
export interface Result {
  readonly name: string;
  readonly error?: string;
}

async function result(name: string, check: Check, lib: Library, around: Surroundings): Promise<Result> {
  try {
    await check(lib, around);
    return { name };
  } catch (error) {
    return { name, error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

/** The one suite of every runtime, without a test framework: it gets the built package and says what came of it. */
export async function run(lib: Library, around: Surroundings): Promise<readonly Result[]> {
  const checks: Checks = {
    ...ENGINE_CHECKS,
    ...PIPELINE_CHECKS,
    ...INBOX_CHECKS,
    ...(around.database && SQLITE_CHECKS),
    ...(lib.node && NODE_CHECKS),
  };
  const results: Result[] = [];
  for (const [name, check] of Object.entries(checks)) results.push(await result(name, check, lib, around));
  return results;
}
