import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { asForms, type Block, blocksOf, blockWith, examples, faultsOf, PAGES } from '../support/samples.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What blocks are given by the page, by the block before, or by the reader. */
const GIVEN = `
import type { Pool } from 'pg';
import type { Receiver, ReceiverOptions, ResultSchemas } from 'proto-webhooks';
import type { Registrations } from 'proto-webhooks/registrations';
declare global {
  const createReceiver: <const S extends ResultSchemas = ResultSchemas, Tx = unknown>(options: Partial<ReceiverOptions<S, Tx>>) => Receiver<S>;
  const createReconciler: typeof import('proto-webhooks/reconcile').createReconciler;
  const sqliteStore: typeof import('proto-webhooks/sqlite').sqliteStore;
  const runVectors: typeof import('proto-webhooks/vectors').runVectors;
  const instrument: typeof import('proto-webhooks/otel').instrument;
  const webhookHandler: typeof import('proto-webhooks/express').webhookHandler;
  const z: typeof import('zod');
  const receiver: Receiver;
  const registrations: Registrations;
  const seller: import('proto-webhooks/testing').FakeSeller;
  const reconciler: import('proto-webhooks/reconcile').Reconciler;
  interface Creative { readonly creative_id: string; readonly status: string; readonly updated_at: string }
  const listCreatives: (agentUrl: string, accountId: string | undefined, how: { readonly signal: AbortSignal }) => Promise<readonly Creative[]>;
  const account: object;
  const agentUrl: string;
  const taskId: string;
  const sender: string;
  const key: string;
  const secret: string;
  const previousSecret: string;
  const token: string;
  const previousToken: string;
  interface Task { readonly status: string; readonly result?: unknown; readonly updated_at?: string }
  const changes: number;
  const getTaskStatus: (agentUrl: string, taskId: string) => Promise<Task>;
  const metrics: { count(name: string, what?: unknown): void; record(name: string, value: number): void };
  const pager: { notify(code: string, text?: string): void };
  const mailer: { send(message: { idempotencyKey: string; subject: string }): Promise<void> };
  const pino: () => import('proto-webhooks').Logger;
  const app: import('express').Express;
  const server: import('node:http').Server;
  const rawBytes: Uint8Array;
  const headers: readonly string[];
  const url: string;
  const method: string;
  const body: AsyncIterable<Uint8Array>;
  const write: (response: import('proto-webhooks').Reply) => void;
}`;

/** Modules that this repository has not installed, as far as blocks use them; of those without a member nothing is judged. */
const ABSENT = `
declare module '@nestjs/common';
declare module '@nestjs/core' { export const NestFactory: { create<T = import('@nestjs/platform-express').NestExpressApplication>(module: object, options?: object): Promise<T> }; }
declare module '@nestjs/platform-express' { export interface NestExpressApplication {
    use(path: string, handle: unknown): void;
    listen(port: number): Promise<void>;
  } }
declare module '@/receiver' { export const receiver: () => import('proto-webhooks').Receiver; }
declare const test: (name: string, run: () => Promise<void>) => void;
declare const expect: (value: unknown) => { toBe(value: unknown): void; toEqual(value: unknown): void };`;

const RECEIVER = `import type { Receiver } from 'proto-webhooks';
export declare const receiver: Receiver;`;

/** What blocks import from beside them: blocks too, or what the page says is the reader's. */
const BESIDE = new Map(
  Object.entries({
    'given.ts': GIVEN,
    'absent.d.ts': ABSENT,
    'receiver.ts': RECEIVER,
    'receiver.d.mts': RECEIVER,
    'buyer.mjs': blockWith('docs/register-with-a-seller.md', 'createReceiver({').code,
    'server.mjs': blockWith('docs/go-live.md', 'expectStoreId: STORE_ID').code,
    'call.mjs': blockWith('docs/calling.md', 'a2aCaller').code,
    'app.module.ts': 'export class AppModule {}',
    'sodium.d.ts': "declare const sodium: import('proto-webhooks').Sodium; export default sodium;",
    'book.ts': 'export declare const book: (id: string | undefined, data: unknown) => Promise<void>;',
    'handle.d.mts': 'export declare const handle: (event: unknown) => Promise<void>;',
    'harness.ts':
      "export declare const makeHarness: Parameters<typeof import('proto-webhooks/testing').describeStoreContract>[0];",
  }),
);

/**
 * What is said of JavaScript: names, modules, exports, members and numbers of arguments that do not exist. Its types are
 * its own affair.
 */
const OF_JAVASCRIPT: ReadonlySet<number> = new Set([
  2304, 2305, 2307, 2339, 2353, 2551, 2552, 2554, 2561, 2724,
]);

/** What the compiler says of these files, which are on no disk, in the strictest form that a reader may have. */
function saidOf(programs: ReadonlyMap<string, string>): readonly string[] {
  const all: ts.CompilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.ESNext,
    // As bundlers and Node find modules, with an extension or without.
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    moduleDetection: ts.ModuleDetectionKind.Force,
    lib: ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts', 'lib.esnext.disposable.d.ts'],
    experimentalDecorators: true,
    allowImportingTsExtensions: true,
    allowJs: true,
    checkJs: true,
    types: ['node'],
    paths: { 'sodium-native': ['./sodium.d.ts'] },
    skipLibCheck: true,
    noEmit: true,
  };
  const files = new Map([...BESIDE, ...programs].map(([name, text]) => [join(root, name), text]));
  const disk = ts.createCompilerHost(all);
  const host: ts.CompilerHost = {
    ...disk,
    getCurrentDirectory: () => root,
    fileExists: (path) => files.has(path) || disk.fileExists(path),
    readFile: (path) => files.get(path) ?? disk.readFile(path),
    getSourceFile: (path, language, ...rest) => {
      const text = files.get(path);
      return text === undefined
        ? disk.getSourceFile(path, language, ...rest)
        : ts.createSourceFile(path, text, language);
    },
  };
  const roots = ['given.ts', 'absent.d.ts', ...programs.keys()].map((name) => join(root, name));
  return ts
    .getPreEmitDiagnostics(ts.createProgram(roots, all, host))
    .filter(({ file, code }) => file?.fileName.endsWith('js') !== true || OF_JAVASCRIPT.has(code))
    .map(
      ({ file, messageText }) =>
        `${file?.fileName.slice(root.length)}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    );
}

/** A block as what it is: a program; statements of one; options of a receiver; senders. */
function programOf({ code, place }: Block): string {
  const [program, options, list] = asForms(code);
  const isFit = (form: string): boolean => faultsOf(form).length === 0;
  if (isFit(program))
    return /^(import|export) /m.test(code) ? code : `export async function block() {\n${code}\n}`;
  if (isFit(options)) return `export default createReceiver${options}`;
  if (isFit(list)) return `export const senders: import('proto-webhooks').Sender[] = ${list}`;
  throw new Error(`${place} is no program and no options`);
}

it('blocks compile, those of TypeScript in the strictest form that a reader may have', () => {
  const blocks = [...PAGES.flatMap(blocksOf), ...examples()].filter(({ language }) =>
    /^[jt]s$/.test(language),
  );
  expect(blocks.length).toBeGreaterThan(50);
  expect(examples().length).toBeGreaterThan(35);
  const programs = blocks.map(
    (block) => [`${block.place.replaceAll(/[/:.]/g, '-')}.${block.language}`, programOf(block)] as const,
  );
  const wrong = [
    ['wrong-import.js', "import { createPolle } from 'proto-webhooks/poller';\nconsole.log(createPolle);"],
    ['wrong.js', 'export const wrong = createReceiver({ mod: 1 });'],
    ['wrong.ts', 'export const wrong: number = receiver.mode;'],
  ] as const;
  expect(saidOf(new Map([...programs, ...wrong]))).toEqual(
    wrong.map(([name]) => expect.stringContaining(name)),
  );
});
