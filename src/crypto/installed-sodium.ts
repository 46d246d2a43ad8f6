// Finds the optional package `sodium-native` on Node (verification.md §3.9).
// Called by the receiver's startup and by `receiverEngine`.

import type { Sodium } from './engine.ts';

interface NodeModule {
  readonly createRequire: (from: string) => ((name: string) => unknown) & {
    readonly resolve: (name: string) => string;
  };
}

const NAME = 'sodium-native';

/**
 * Looks for `sodium-native` (verification.md §3.9), on Node alone, unless `PROTO_WEBHOOKS_SODIUM` is 0.
 * @returns a function that loads it, or throws the error of loading; undefined if it is not installed.
 */
export function installedSodium(): (() => Sodium) | undefined {
  const { process } = globalThis;
  const { node, bun, deno } = process?.versions ?? {};
  if (node === undefined || bun !== undefined || deno !== undefined) return undefined;
  if (process.env['PROTO_WEBHOOKS_SODIUM'] === '0') return undefined;
  try {
    const { createRequire } = process.getBuiltinModule('node:module') as NodeModule;
    const load = createRequire(import.meta.url);
    load.resolve(NAME);
    return () => load(NAME) as Sodium;
  } catch {
    return undefined;
  }
}
