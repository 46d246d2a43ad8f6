import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import tsup from '../../tsup.config.ts';
import { CODES } from '../../src/for-tests.ts';

type ErrorClass = new (...args: unknown[]) => Error & { readonly code?: unknown };

/** How each class is made that is not made of a message and options. */
const ARGUMENTS: Readonly<Record<string, readonly unknown[]>> = {
  Fault: ['store_unavailable', 'it is away'],
  RegistrationError: ['request_invalid', 'it is wrong'],
  RegistryError: ['server', 'it fails'],
  SellerBusyError: [429, 1_000],
  SellerError: ['AUTH_INVALID', 'no'],
};

const { entry } = tsup as { readonly entry: Readonly<Record<string, string>> };

/** Every error class that an entry of the package exports, by name. */
async function exportedErrors(): Promise<ReadonlyMap<string, ErrorClass>> {
  const found = new Map<string, ErrorClass>();
  for (const [name, file] of Object.entries(entry)) {
    if (name === 'cli') continue;
    const module = (await import(`../../${file}`)) as Readonly<Record<string, unknown>>;
    for (const [exported, value] of Object.entries(module)) {
      if (typeof value === 'function' && value.prototype instanceof Error) {
        found.set(exported, value as ErrorClass);
      }
    }
  }
  return found;
}

const classes = await exportedErrors();

describe('every error class that is exported', () => {
  it('is found', () => {
    expect([...classes.keys()]).toEqual(
      expect.arrayContaining(['ConfigError', 'Fault', 'SellerError', 'RegistryError', 'VectorError']),
    );
  });

  it.each([...classes].filter(([name]) => name !== 'PrintableError'))(
    '%s has its name, a code of the table, and the cause that it is given',
    (name, Made) => {
      const cause = new Error('why');
      const error = new Made(...(ARGUMENTS[name] ?? ['it is so']), { cause });
      expect(error.name).toBe(name);
      expect(error.cause).toMatchObject({ message: 'why' });
      // The one whose code is another's word.
      if (name === 'SellerError') expect(error.code).toBe('AUTH_INVALID');
      else expect(Object.keys(CODES)).toContain(error.code);
    },
  );
});

/** Inside of one module, and never seen by a caller. */
const INTERNAL: ReadonlySet<string> = new Set(['Missing', 'NotBegun']);

it('no error class of the source is without a code', () => {
  const folder = new URL('../../src/', import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const without: string[] = [];
  let count = 0;
  for (const file of files) {
    const text = readFileSync(new URL(file, folder), 'utf8');
    for (const [, name = '', base = '', body = ''] of text.matchAll(
      /^(?:export )?(?:abstract )?class (\w+) extends (\w+) \{([^]*?)\}$/gm,
    )) {
      count += 1;
      if (base !== 'ConfigError' && !INTERNAL.has(name) && !/readonly code\b/.test(body)) without.push(name);
    }
  }
  expect(count).toBeGreaterThan(15);
  expect(without).toEqual([]);
});
