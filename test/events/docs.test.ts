import { describe, expect, it } from 'vitest';
import { notificationFamily } from '../../src/events/for-tests.ts';
import { SAMPLE_FAMILIES } from '../../src/testing/for-tests.ts';
import { samplePayloads } from '../../src/testing/index.ts';
import { textOf } from '../support/samples.ts';

const COMMON = ['idempotency_key', 'notification_id', 'timestamp', 'notification_type'];

/** Rows of tables, by their cells. */
const rowsOf = (file: string): readonly string[][] =>
  (textOf(file).match(/^\| .*/gm) ?? []).map((line) => line.split(' | '));

describe.each(['docs/events.md', 'docs/spec/verification.md'])('the table of families in %s', (file) => {
  it.each(SAMPLE_FAMILIES)('has %s with each of its members', (family) => {
    const name = family === 'product.updated' ? 'product.*' : family;
    const rows = rowsOf(file).filter(([first = '']) => first.includes(`\`${name}\``));
    expect(rows).toHaveLength(1);
    const row = rows[0]?.join(' | ') ?? '';
    const members = Object.keys(samplePayloads().family(family)).filter(
      (member) => !COMMON.includes(member) && (member !== 'event' || name === 'product.*'),
    );
    expect(members.filter((member) => !row.includes(`\`${member}`))).toEqual([]);
    expect(notificationFamily(family) === family || row.includes('wholesale_feed')).toBe(true);
  });
});
