import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, it } from 'vitest';

const examples = fileURLToPath(new URL('../../examples', import.meta.url));

/** Projects with a `package.json` of their own. */
const projects = readdirSync(examples, { recursive: true, encoding: 'utf8' })
  .filter((file) => /^[^/]+\/package\.json$/.test(file))
  .map((file) => file.split('/')[0] ?? '');

/** `@scope/name` or `name` of an import; undefined for a file (`@/` is Next's word for its root), or for what the runtime has. */
function packageOf(specifier: string): string | undefined {
  if (/^(\.|@\/)/.test(specifier) || isBuiltin(specifier) || specifier.includes(':')) return undefined;
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function importedBy(project: string): ReadonlySet<string> {
  const files = readdirSync(join(examples, project), { recursive: true, encoding: 'utf8' }).filter(
    (file) => /\.[cm]?[jt]sx?$/.test(file) && !/node_modules|\bdist\b/.test(file),
  );
  const specifiers = files.flatMap((file) =>
    ts
      .preProcessFile(readFileSync(join(examples, project, file), 'utf8'))
      .importedFiles.map(({ fileName }) => fileName),
  );
  return new Set(specifiers.flatMap((specifier) => packageOf(specifier) ?? []));
}

it.each(projects)('examples/%s: its package.json names each package that its code imports', (project) => {
  const manifest = JSON.parse(readFileSync(join(examples, project, 'package.json'), 'utf8')) as Record<
    string,
    Record<string, string> | undefined
  >;
  const named = { ...manifest['dependencies'], ...manifest['devDependencies'] };
  const imported = importedBy(project);
  expect(imported).toContain('proto-webhooks');
  // Types alone may come from elsewhere.
  const isNamed = (name: string): boolean =>
    [name, `@types/${name}`].some((one) => Object.hasOwn(named, one));
  expect([...imported].filter((name) => !isNamed(name))).toEqual([]);
});
