import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  ADAGENTS,
  brandJsonKind,
  type DocumentKind,
  JWKS,
  KEY_DOCUMENT_LIFE,
  KEY_LIMITS,
  revocationKind,
} from '../../src/keys/for-tests.ts';
import { FAULTS } from '../../src/testing/for-tests.ts';
import { MINUTE } from './setup.ts';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const docs = read('docs/keys.md');

/** Cells of the row that begins with `name`. */
function row(name: string): string[] {
  const line = docs.split('\n').find((text) => text.startsWith(`| ${name} `)) ?? '';
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}

describe('docs/keys.md agrees with the code', () => {
  test.each<[DocumentKind<unknown>]>([[brandJsonKind(false)], [JWKS], [ADAGENTS]])(
    'how long $name is cached',
    ({ name, maxBytes, life = KEY_DOCUMENT_LIFE, hardLimitMs = KEY_LIMITS.hardLimitMs }) => {
      const [min, max, silent, hard] = [life.minMs, life.maxMs, life.defaultMs, hardLimitMs].map(
        (ms) => ms / MINUTE,
      );
      expect(row(name)).toEqual([
        name,
        `${maxBytes / 1024} KiB`,
        `\`Cache-Control\`, within ${min} to ${max} min; ${silent} min if silent`,
        `${hard} min after it was fetched`,
      ]);
    },
  );

  test('how long a revocation list is cached, and that there is none', () => {
    const kind = revocationKind(new Map());
    expect(row('revocation list')[1]).toBe(`${kind.maxBytes / 1024} KiB`);
    expect(docs).toContain(`means no list, for ${(kind.dueAt?.({}, 0) ?? 0) / MINUTE} min`);
  });

  test('the waits', () => {
    expect(docs).toContain(`waits at most ${KEY_LIMITS.deliveryMs / 1000} s in all`);
    expect(docs).toContain(`goes on to its own limit of ${KEY_LIMITS.deadlineMs / 1000} s`);
    expect(docs).toContain(`(${KEY_LIMITS.ownFetchMs / 1000} s on workerd`);
    expect(KEY_LIMITS.patienceMs).toBe(KEY_LIMITS.deliveryMs);
    expect(docs).toContain(`fetched again at most once in ${KEY_LIMITS.cooldownMs / 1000} s`);
  });

  test('faults of the fake seller: each of them', () => {
    const named = Object.keys(FAULTS).filter((fault) => !docs.includes(`\`${fault}\``));
    expect(named).toEqual([]);
  });

  test('codes and alarms: they exist', () => {
    const entries = ['docs/errors.md', 'docs/alarms.md'].map(read).join('\n');
    const known = new Set([...entries.matchAll(/^### `(\w+)`$/gm)].map(([, name]) => name));
    const answers = docs.slice(
      docs.indexOf('## What each failure answers'),
      docs.indexOf('## Several sellers'),
    );
    const outcomes = [...docs.matchAll(/`(webhook_\w+|keys_unavailable)`/g)].map(([, name]) => name);
    const raised = [
      ...answers.matchAll(/(?<=^- `)\w+(?=`)/gm),
      ...docs.matchAll(/(?<=alarms? `)\w+(?=`)/g),
      ...docs.matchAll(/(?<=\]\(alarms\.md#)\w+_\w+(?=\))/g),
    ].map(([name]) => name);
    expect([outcomes.length > 5, new Set(raised).size > 8]).toEqual([true, true]);
    expect([...outcomes, ...raised].filter((name) => !known.has(name))).toEqual([]);
  });
});
