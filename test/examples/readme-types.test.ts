import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { openWorkshop, type Project, type Workshop } from '../consumers/project.ts';
import { INSTALL_MS } from '../support/packed.ts';

const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));

const OPTIONS = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', 'false'];
const TARGET = ['--target', 'es2022', '--types', 'node'];

describe('README: its TypeScript, in a project that has the packed package, @types/node and nothing else', () => {
  let workshop: Workshop;
  let project: Project;

  beforeAll(async () => {
    workshop = await openWorkshop(inject('shared'));
    project = await workshop.project('readme-types', {});
    await project.add('first-receiver.ts');
    for (const dependency of ['@types/node', 'undici-types']) {
      const at = join(project.folder, 'node_modules', dependency);
      await mkdir(join(at, '..'), { recursive: true });
      await symlink(join(MODULES, dependency), at);
    }
  }, INSTALL_MS);
  afterAll(() => workshop[Symbol.asyncDispose]());

  it.each([
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ])('module %s, moduleResolution %s: passes the compiler', async (module, resolution) => {
    const how = ['--module', module, '--moduleResolution', resolution];
    const tsc = join(MODULES, 'typescript/bin/tsc');
    expect(await project.run(process.execPath, tsc, ...OPTIONS, ...TARGET, ...how, 'first-receiver.ts')).toBe(
      '',
    );
  });
});
