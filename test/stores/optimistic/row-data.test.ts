import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RowId, RowKind } from '../../../src/stores/index.ts';
import type { RegistrationKind, RegistrationRow } from '../../../src/stores/index.ts';
import {
  type AnyRow,
  fitted,
  nameOf,
  packed,
  PROCESSES,
  type RowData,
  scopeName,
  unpacked,
} from '../../../src/stores/for-tests.ts';

/** Any string, the odd ones often: NUL, lone surrogates, control characters, long ones. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({
    unit: fc.constantFrom('\0', '\u0001', '#', '\ud800', '\udc00', 'é', '"', ' ', '7'),
    maxLength: 6,
  }),
  fc.constantFrom(
    '\u0001#',
    '__proto__',
    'constructor',
    '',
    'x'.repeat(512),
    'x'.repeat(513),
    'é'.repeat(600),
  ),
);
const instant = fc.nat(2 ** 48);
const maybe = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(of, { nil: null });

const registrationOf = (kind: RegistrationKind): fc.Arbitrary<RegistrationRow> =>
  fc.record({
    kind: fc.constant(kind),
    sender: text,
    id: text,
    value: text,
    dueAt: maybe(instant),
    list: maybe(text),
    expiresAt: maybe(instant),
  });

const ROWS: { readonly [K in RowKind]: fc.Arbitrary<RowData[K]> } = {
  record: fc.record({
    sender: text,
    key: text,
    state: fc.constantFrom('queued', 'leased', 'applied', 'stale', 'dead'),
    claim: fc.constantFrom('won', 'queued', 'stale', 'died', 'waiting'),
    claimedBy: text,
    owner: maybe(text),
    runs: fc.nat(9),
    leaseUntil: instant,
    attempts: fc.nat(9),
    crashes: fc.nat(9),
    suspect: fc.boolean(),
    process: maybe(text),
    crashedIn: maybe(text),
    acked: fc.boolean(),
    insertedAt: instant,
    notBefore: instant,
    parkedUntil: instant,
    lastError: maybe(text),
    rawHash: text,
    canonicalHash: maybe(text),
    traceparent: fc.option(text, { nil: undefined }),
    url: fc.option(text, { nil: undefined }),
    task: maybe(fc.record({ id: text, instant: text, instantMs: instant, terminal: fc.boolean() })),
    reemission: fc.boolean(),
    afterTerminal: fc.boolean(),
    ahead: fc.boolean(),
    afterFinal: fc.boolean(),
    windows: maybe(fc.array(fc.record({ id: text, stage: text }), { maxLength: 2 })),
    claimedState: maybe(fc.record({ id: text, at: instant })),
    bodyBytes: fc.nat(9),
    expiresAt: maybe(instant),
  }),
  task: fc.record({
    sender: text,
    id: text,
    holder: maybe(text),
    mark: maybe(text),
    markTerminal: fc.boolean(),
    terminal: maybe(fc.record({ key: text, hash: text, state: fc.constantFrom('open', 'applied') })),
    told: maybe(fc.record({ status: text, at: instant })),
    waiting: fc.boolean(),
    expiresAt: instant,
  }),
  nonce: fc.record({
    sender: text,
    keyid: text,
    nonce: text,
    key: maybe(text),
    acceptId: text,
    expiresAt: instant,
  }),
  notification: fc.record({ sender: text, id: text, key: text, instant: maybe(text), expiresAt: instant }),
  process: fc.record({ id: text, expiresAt: instant }),
  operation: registrationOf('operation'),
  route: registrationOf('route'),
  watch: registrationOf('watch'),
  stream: registrationOf('stream'),
  subscription: registrationOf('subscription'),
  snapshot: registrationOf('snapshot'),
  move: registrationOf('move'),
};

function rowIdOf(kind: RowKind, row: AnyRow): RowId {
  if ('nonce' in row)
    return { kind, scope: { sender: row.sender, keyid: fitted(row.keyid) }, id: fitted(row.nonce) };
  if (!('sender' in row)) return { kind, scope: PROCESSES, id: fitted(row.id) };
  const id = 'state' in row ? row.key : row.id;
  return { kind, scope: { sender: row.sender }, id: fitted(id) };
}

describe('packing rows', () => {
  it.each(Object.keys(ROWS) as RowKind[])('returns a %s unchanged after unpacking', (kind) => {
    fc.assert(
      fc.property(ROWS[kind], (row) => {
        const id = rowIdOf(kind, row);
        const data = packed(id, row);
        expect(data.isWellFormed()).toBe(true);
        const back = unpacked({ ...id, data });
        // A key id is its scope's, in the form in which it is stored.
        expect(back).toEqual('keyid' in row ? { ...row, keyid: fitted(row.keyid) } : row);
      }),
      { numRuns: 500 },
    );
  });
});

describe('fitted()', () => {
  it('maps each string to a distinct short well-formed name', () => {
    fc.assert(
      fc.property(text, text, (one, other) => {
        expect(fitted(one).length).toBeLessThanOrEqual(512);
        expect(fitted(one).isWellFormed() && !fitted(one).includes('\0')).toBe(true);
        expect(fitted(one) === fitted(other)).toBe(one === other);
      }),
      { numRuns: 2000 },
    );
  });

  it('hashes what is longer than an index takes, and gives no other string that name', () => {
    const long = fitted('x'.repeat(513));
    expect(long.slice(0, 2)).toBe('\u0001#');
    expect(long.slice(2)).toMatch(/^[0-9a-f]{64}$/);
    expect(fitted(long)).not.toBe(long);
  });
});

describe('nameOf() and scopeName()', () => {
  it('differ whenever an input differs', () => {
    const ids = fc.record({
      kind: fc.constantFrom<RowKind>('record', 'task', 'nonce', 'notification'),
      scope: fc.record(
        { sender: fc.string({ maxLength: 3 }), keyid: fc.string({ maxLength: 3 }) },
        { requiredKeys: ['sender'] },
      ),
      id: fc.string({ maxLength: 3 }),
    });
    const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
    fc.assert(
      fc.property(ids, ids, (one, other) => {
        expect(nameOf(one) === nameOf(other)).toBe(same(one, other));
        // A sender is a URL.
        const [a, b] = [one, other].map(({ scope }) => ({ ...scope, sender: `https://${scope.sender}` }));
        if (a && b) expect(scopeName(a) === scopeName(b)).toBe(same(a, b));
      }),
      { numRuns: 2000 },
    );
  });
});
