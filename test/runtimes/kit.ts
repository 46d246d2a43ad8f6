import type { KeyPair } from '../../src/sender/sign.ts';
import type { ToolEnvelope } from '../../src/events/index.ts';

/** The built package, as the runtime under test loaded it. Only types are taken from the sources. */
export interface Library {
  readonly core: typeof import('../../src/index.ts');
  readonly events: typeof import('../../src/events/index.ts');
  readonly fetch: typeof import('../../src/adapters/fetch.ts');
  readonly memory: typeof import('../../src/stores/memory.ts');
  readonly registry: typeof import('../../src/registry/index.ts');
  readonly rfc9421: typeof import('../../src/auth/rfc9421/index.ts');
  readonly sender: typeof import('../../src/sender/sign.ts');
  /** Where files and servers are: not on workers. */
  readonly sqlite?: typeof import('../../src/stores/sqlite.ts');
  readonly node?: typeof import('../../src/adapters/node.ts');
}

export type EngineName = 'native' | 'webcrypto' | 'noble';

/** What the runtime under test has. */
export interface Surroundings {
  /** Base URL of a registry that answers everything with a redirect to another origin. */
  readonly redirecting: string;
  /** In the order in which they are preferred. */
  readonly engines: readonly EngineName[];
  /** A seller whose brand.json and JWKS are served on loopback. */
  readonly seller?: { readonly agentUrl: string; readonly privateJwk: KeyPair['privateJwk'] };
  /** The path of a new database: not on workers. */
  readonly database?: () => string;
}

/** Throws where it fails. */
export type Check = (lib: Library, around: Surroundings) => Promise<void>;

/** Checks by what they show. */
export type Checks = Readonly<Record<string, Check>>;

/** @throws where the two are not the same as JSON. */
export function same(actual: unknown, expected: unknown, about = ''): void {
  const [left, right] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${about} expected ${right}, got ${left}`.trim());
}

export const newId = (): string => globalThis.crypto.randomUUID();

/** A tool-transport envelope with a key and a task of its own. */
export function envelope(more: Readonly<Record<string, unknown>> = {}): ToolEnvelope {
  return {
    idempotency_key: newId(),
    task_id: newId(),
    operation_id: newId(),
    task_type: 'create_media_buy',
    status: 'completed',
    timestamp: new Date().toISOString(),
    result: { media_buy_id: 'mb_1' },
    ...more,
  };
}

/** A promise and what settles it. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  return { opened, open };
}

/** Waits until it is so. @throws after a minute. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 6000; tries += 1) {
    if (await holds()) return;
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
  throw new Error('it did not come to that within a minute');
}
