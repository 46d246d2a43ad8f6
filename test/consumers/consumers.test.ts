import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { FORM, inThisForm } from '../reliability/form.ts';
import { fetchRuntimes, RUNTIMES } from '../runtimes/runtimes.ts';
import { INSTALL_MS } from '../support/packed.ts';
import { asWritten } from '../support/samples.ts';
import { openWorkshop, type Project, type Workshop } from './project.ts';

const tsc = join(createRequire(import.meta.url).resolve('typescript/package.json'), '../bin/tsc');
const manifest = JSON.parse(
  readFileSync(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8'),
) as { exports: Record<string, unknown>; devDependencies: Record<string, string> };

/** `proto-webhooks`, `proto-webhooks/node`, … */
const specifiers = Object.entries(manifest.exports)
  .filter(([, target]) => typeof target === 'object')
  .map(([subpath]) => `proto-webhooks${subpath.slice(1)}`);
/** In `npm test` that of this repository alone. */
const NODES = RUNTIMES.filter(({ name }) => name.startsWith(FORM === 'short' ? 'Node 24' : 'Node '));
/** The optional peers that subpaths import by themselves. */
const PEERS = ['@opentelemetry/api', '@modelcontextprotocol/sdk', '@a2a-js/sdk'].map(
  (name) => `${name}@${manifest.devDependencies[name] ?? ''}`,
);

let workshop: Workshop;
let binaryOf: Awaited<ReturnType<typeof fetchRuntimes>>;
beforeAll(async () => {
  [workshop, binaryOf] = await Promise.all([openWorkshop(inject('shared')), fetchRuntimes(NODES)]);
}, INSTALL_MS);
afterAll(() => workshop[Symbol.asyncDispose]());

const tsconfig = (module: string, moduleResolution: string): string =>
  JSON.stringify({
    compilerOptions: {
      target: 'ES2023',
      lib: ['ES2023', 'ESNext.Disposable'],
      module,
      moduleResolution,
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      // What users see of the declarations is checked too.
      skipLibCheck: false,
      noEmit: true,
      types: ['node'],
    },
    include: ['*.ts'],
  });

describe('a TypeScript project', () => {
  let project: Project;
  beforeAll(async () => {
    const types = `@types/node@${manifest.devDependencies['@types/node'] ?? ''}`;
    project = await workshop.project('typescript', { type: 'module' }, [types, 'zod@^4', ...PEERS]);
    await project.add('receiver.ts');
    await project.add('own-store.ts');
    await project.add('first-receiver.ts');
    await project.add('every-function.ts');
    const imports = specifiers.map((specifier, index) => `import * as part${index} from '${specifier}';`);
    const names = specifiers.map((_, index) => `part${index}`);
    await project.write('every.ts', `${imports.join('\n')}\nexport const every = [${names.join(', ')}];\n`);
  }, INSTALL_MS);

  it('uses every public value', () => {
    const text = readFileSync(fileURLToPath(new URL('fixtures/every-function.ts', import.meta.url)), 'utf8');
    const named = new Map(
      [...text.matchAll(/import \* as (\w+) from '(.*)';/g)].map(([, as, from]) => [from, as]),
    );
    const face = readFileSync(fileURLToPath(new URL('../repository/face.txt', import.meta.url)), 'utf8');
    const values = [...face.matchAll(/^\.(\S*) value (\S+)$/gm)];
    expect(values.length).toBeGreaterThan(60);
    const unused = values.filter(([, subpath, name]) => {
      const from = `proto-webhooks${subpath}`;
      // Callers share the errors of registrations.
      const places = name?.endsWith('Error') ? [...named.values()] : [named.get(from)];
      return !places.some((as) => new RegExp(`\\b${as}\\.${name}\\b`).test(text));
    });
    expect(unused.map(([line]) => line)).toEqual([]);
  });

  const resolutions = [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ] as const;
  it.each(inThisForm(resolutions, ([module]) => module === 'nodenext'))(
    'module %s, moduleResolution %s: every subpath and a receiver pass the compiler',
    async (module, resolution) => {
      await project.write('tsconfig.json', tsconfig(module, resolution));
      expect(await project.run(process.execPath, tsc, '-p', '.')).toBe('');
    },
  );

  // One pass of the compiler is enough for `npm test`.
  it.each(FORM === 'short' ? [] : ['docs/typescript-and-jest.md'])('the tsconfig.json of %s', async () => {
    await project.write('tsconfig.json', asWritten('docs/typescript-and-jest.md', 'compilerOptions'));
    expect(await project.run(process.execPath, tsc, '-p', '.')).toBe('');
  });

  it('runs, as it is and bundled', async () => {
    const said = { statuses: [200, 200, 200, 401, 405], bought: 2, reports: 1, outcomes: 5 };
    expect(JSON.parse(await project.run(process.execPath, 'receiver.ts'))).toEqual(said);
    const outfile = join(project.folder, 'bundle.mjs');
    const entryPoints = [join(project.folder, 'receiver.ts')];
    await build({ entryPoints, outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' });
    expect(JSON.parse(await project.run(process.execPath, 'bundle.mjs'))).toEqual(said);
  });

  it('a store of its own, by public names alone, passes describeStoreContract', async () => {
    // A runner of tests inside a runner of tests reports to the outer one.
    const stdout = await project.run(process.execPath, '--test', '--test-reporter=tap', 'own-store.ts');
    expect(stdout).toMatch(/^# fail 0$/m);
    expect(Number(/^# pass (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(90);
  });
});

describe('a plain JavaScript project with require()', () => {
  let project: Project;
  beforeAll(async () => {
    project = await workshop.project('javascript', {}, [...(FORM === 'short' ? [] : ['jest@^30']), ...PEERS]);
    await project.add('receiver.cjs', 'receiver.js');
    await project.write('every.js', `console.log(${JSON.stringify(specifiers)}.map(require).length);\n`);
  }, INSTALL_MS);

  it.each(NODES)('$name requires every subpath and takes deliveries', async (runtime) => {
    const node = binaryOf(runtime);
    expect(await project.run(node, 'every.js')).toBe(`${specifiers.length}\n`);
    expect(JSON.parse(await project.run(node, 'receiver.js'))).toEqual({
      statuses: [200, 200, 401],
      handled: 1,
      refused: true,
    });
  });

  // In `npm test` nobody installs Jest.
  it.each(FORM === 'short' ? [] : NODES.filter(({ version }) => /^(22\.13|24)\./.test(version)))(
    '$name: Jest runs what docs/typescript-and-jest.md says',
    async (runtime) => {
      await project.write('jest.config.mjs', asWritten('docs/typescript-and-jest.md', 'testEnvironment:'));
      await project.write('webhooks.test.mjs', asWritten('docs/typescript-and-jest.md', 'a completed task'));
      const jest = [
        '--experimental-vm-modules',
        'node_modules/jest/bin/jest.js',
        '--json',
        '--outputFile=said.json',
      ];
      await project.run(binaryOf(runtime), ...jest);
      const said: unknown = JSON.parse(readFileSync(join(project.folder, 'said.json'), 'utf8'));
      expect(said).toMatchObject({ success: true, numPassedTests: 1, numTotalTests: 1 });
    },
  );
});
