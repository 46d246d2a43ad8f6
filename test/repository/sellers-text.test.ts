import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../src/', import.meta.url));
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));

/** Lines of the code that match, as `file: what matched`. */
const found = (pattern: RegExp): readonly string[] =>
  files
    .flatMap((name) => {
      const text = readFileSync(root + name, 'utf8');
      return Array.from(text.matchAll(pattern), ([whole]) => `${name}: ${whole.trim()}`);
    })
    .sort();

/*
 * That whatever leaves is printable stands where it leaves (verification.md §2.30). A logger of the owner's has no other type than
 * `SafeLogger` inside, which the compiler holds; what a compiler does not see is held here.
 */

it('an error of the package makes its message printable, but for those whose text is the owner’s own', () => {
  expect(found(/class \w+ extends Error\b/g)).toEqual([
    'cli/probe/probe-kit.ts: class NotBegun extends Error',
    'codec/printable-value.ts: class PrintableError extends Error',
    'shared/errors.ts: class ConfigError extends Error',
    'shared/errors.ts: class Fault extends Error',
    'shared/errors.ts: class PermanentError extends Error',
    'stores/optimistic/plan-rows.ts: class Missing extends Error',
  ]);
});

it('one place writes to the console, and one to the process’ streams, beside the line for a Node that is too old', () => {
  expect(found(/^(?!\s*(?:\*|\/\/|\/\*)).*\bconsole[.[]/gm).map((line) => line.split(':')[0])).toEqual([
    'shared/logging.ts',
  ]);
  const streams = found(/\b(?:stdout|stderr|stream)\.write\(/g).map((line) => line.split(':')[0]);
  expect(new Set(streams)).toEqual(new Set(['cli/program.ts', 'cli/main.ts']));
});

it('a logger of the owner’s is given to safeLogger and to nothing else', () => {
  const uses = found(/.*\boptions\.logger\b.*/g);
  expect(
    uses.filter(
      (line) =>
        !/options\.logger \?\? consoleLogger\(\)|requireLogger\(|options\.logger === undefined/.test(line),
    ),
  ).toEqual([]);
  expect(found(/\bsafeLogger\(options\.logger/g)).toHaveLength(2);
});

it('what a span is told goes through the helper', () => {
  const told = found(/\.(?:setAttributes?|recordException|addEvent|updateName)\(.*/g);
  expect(told.length).toBeGreaterThan(0);
  expect(told.filter((line) => !/\((?:printableValue|printableText)\(/.test(line))).toEqual([]);
});
