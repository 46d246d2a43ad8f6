import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { CODES } from '../../src/for-tests.ts';
import type { AlarmCode, Outcome, RefusedCode, UnavailableCode } from '../../src/index.ts';
import { ALARMS } from './alarms.ts';
import { FAULTS } from './faults.ts';
import { REGISTRY } from './registry.ts';
import { REGISTRATIONS } from './registrations.ts';
import { REFUSALS } from './refusals.ts';
import { THROWN } from './thrown.ts';

const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');

/** A machine may be slow: vitest has a limit of its own. */
const PATIENT_MS = 60_000;

/** What the page says of a code in its first line: statuses, `alarm`, `thrown`, and who has to act. */
interface Entry {
  readonly said: readonly string[];
  readonly text: string;
}

const ENTRY = /^### `(\w+)`\n\n\*\*(.+)\.\*\* ([^\n]+)$/gm;
const entries = new Map(
  [...page.matchAll(ENTRY)].map(([, code = '', said = '', text = '']): [string, Entry] => [
    code,
    { said: said.split(' · '), text },
  ]),
);
const saidOf = (code: string): readonly string[] => entries.get(code)?.said ?? [];

const WHO = ['you act', 'the seller acts', 'nobody has to act', 'the seller acts, or you'];

const keysOf = <K extends string>(table: Readonly<Record<K, unknown>>): readonly K[] =>
  Object.keys(table) as K[];

const refused = keysOf<RefusedCode>(REFUSALS);
const unavailable = keysOf<UnavailableCode>(FAULTS);
const alarms = keysOf<AlarmCode>(ALARMS);
const ERRORS = { ...THROWN, ...REGISTRY, ...REGISTRATIONS };
const thrown = keysOf(ERRORS);

type Kind = (typeof CODES)[keyof typeof CODES][number];

/** How each kind of the table of codes stands on the page; a warning alone has no entry. */
const FORM: Readonly<Record<Kind, string | undefined>> = {
  refused: '4xx',
  authentication: '4xx',
  envelope: '4xx',
  unavailable: '503',
  alarm: 'alarm',
  setting: 'alarm',
  warning: undefined,
  thrown: 'thrown',
  registration: 'thrown',
  registry: 'thrown',
};

/** Code → the forms that its entry has to name, by the table; a code that is a warning alone has none. */
const FORMS = new Map(
  Object.entries(CODES).map(([code, kinds]): [string, readonly string[]] => [
    code,
    [...new Set(kinds.flatMap((kind: Kind) => FORM[kind] ?? []))].toSorted(),
  ]),
);

/** No text of ours may reach its sender. */
function expectSilent({ response }: Outcome, detail: string): void {
  expect(JSON.stringify(response)).not.toContain(detail);
}

describe('every code can be caused through the public API and has its text', () => {
  it.each(refused)('refused: %s', async (code) => {
    const { test, message } = REFUSALS[code];
    const outcome = await test();
    expect(outcome).toMatchObject({ kind: 'refused', code, detail: expect.stringContaining(message) });
    expect(saidOf(code)).toContain(String(outcome.response.status));
    expectSilent(outcome, message);
  });

  it.each(unavailable)('503: %s', async (code) => {
    const { test, message } = FAULTS[code];
    const outcome = await test();
    expect(outcome).toMatchObject({ kind: 'unavailable', code, detail: expect.stringContaining(message) });
    expect(outcome.response.status).toBe(503);
    expect(saidOf(code)).toContain('503');
    expectSilent(outcome, message);
  });

  it.each(alarms)('alarm: %s', async (code) => {
    const { test, message } = ALARMS[code];
    const raised = await test();
    // Some are raised beside the delivery, which does not wait for them.
    await vi.waitUntil(() => raised.some((alarm) => alarm.code === code), {
      timeout: PATIENT_MS,
      interval: 5,
    });
    expect(raised.find((alarm) => alarm.code === code)?.message).toContain(message);
    expect(saidOf(code)).toContain('alarm');
  });

  it.each(thrown)('thrown: %s', async (code) => {
    const { test, message } = ERRORS[code];
    expect(await test()).toMatchObject({ code, message: expect.stringContaining(message) });
    expect(saidOf(code)).toContain('thrown');
  });
});

describe('docs/errors.md', () => {
  it('has each code once, and no other', () => {
    const headings = [...page.matchAll(/^### `(.*)`$/gm)].map(([, code = '']) => code);
    const codes = [...FORMS].filter(([, forms]) => forms.length > 0).map(([code]) => code);
    expect(headings.toSorted()).toEqual(codes.toSorted());
    expect([...entries.keys()]).toEqual(headings);
  });

  it.each([...entries])('%s: how it shows, who acts, cause and fix', (code, { said, text }) => {
    const forms = said.slice(0, -1);
    expect(forms.map((form) => form.replace(/^4\d\d$/, '4xx')).toSorted()).toEqual(FORMS.get(code));
    expect(WHO).toContain(said.at(-1));
    expect(text).toMatch(/_Cause:_ .+ _Fix:_ .+/);
  });
});
