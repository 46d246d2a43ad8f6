import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { deadLinks, strangePages, unexplained } from '../support/links.ts';
import { packed } from '../support/packed.ts';
import { SPECS } from './spec.ts';

let folder: string;
let files: readonly string[];
let pages: readonly string[];

const read = (file: string): string => readFileSync(join(folder, file), 'utf8');

beforeAll(async () => {
  const parent = mkdtempSync(join(tmpdir(), 'proto-webhooks-packed-'));
  await promisify(execFile)('tar', ['-xzf', await packed(inject('shared')), '-C', parent]);
  folder = join(parent, 'package');
  files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => file.split(sep).join('/'));
  pages = files.filter((file) => file.endsWith('.md'));
});
afterAll(() => rmSync(join(folder, '..'), { recursive: true }));

describe('the packed package', () => {
  it('has its licence, its documents and its code, and nothing of the tests', () => {
    const expected = [
      'LICENSE',
      'SECURITY.md',
      'THIRD_PARTY.md',
      'README.md',
      'CHANGELOG.md',
      'docs/keys.md',
      'dist/index.d.ts',
    ];
    expect(expected.filter((file) => !files.includes(file))).toEqual([]);
    expect(files.filter((file) => /^(test|src|bench|examples|scripts)\b/.test(file))).toEqual([]);
    expect(files.filter((file) => /^docs\/(spec|performance)/.test(file))).toEqual([]);
    expect(read('LICENSE')).toContain('Apache License\n                           Version 2.0, January 2004');
    expect(read('LICENSE')).toContain('APPENDIX: How to apply the Apache License to your work.');
  });

  it('has links to files of its own alone, and no dead one', () => {
    expect(pages.length).toBeGreaterThan(20);
    expect(pages.flatMap((page) => deadLinks(folder, page))).toEqual([]);
  });

  it('has at most 40,000 words of Markdown: who adds a page shortens others', () => {
    const counts = pages.map((page) => read(page).split(/\s+/).filter(Boolean).length);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(40_000);
  });

  it('states rules in its pages, without their numbers in docs/spec', () => {
    const numbers = pages.flatMap((page) =>
      (read(page).match(/.*§.*/g) ?? []).map((line) => `${page}: ${line}`),
    );
    expect(numbers).toEqual([]);
  });

  it('cites files of the repository only where it says that they are there', () => {
    const found = pages.flatMap((page) => unexplained(read(page)).map((cited) => `${page}: ${cited}`));
    expect(found).toEqual([]);
  });

  it('names no document that it does not contain; comments of code may cite the rules of the repository', () => {
    const rules = SPECS.map((name) => `${name}.md`);
    const code = files.filter((file) => /\.(js|d\.ts)$/.test(file));
    const texts = files.filter((file) => /\.md$|^vectors\/.*\.json$/.test(file));
    const found = [
      ...texts.flatMap((file) => strangePages(read(file), pages).map((name) => `${file}: ${name}`)),
      ...code.flatMap((file) =>
        strangePages(read(file), [...pages, ...rules]).map((name) => `${file}: ${name}`),
      ),
    ];
    expect(found).toEqual([]);
  });
});
