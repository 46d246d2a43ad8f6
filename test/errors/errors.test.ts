import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { alarmRaiser, CODES, safeLogger } from '../../src/for-tests.ts';
import type { AlarmCode, Outcome, RefusedCode, UnavailableCode } from '../../src/index.ts';
import { ALARMS } from './alarms.ts';
import { FAULTS } from './faults.ts';
import { REGISTRY } from './registry.ts';
import { REGISTRATIONS } from './registrations.ts';
import { REFUSALS } from './refusals.ts';
import { THROWN } from './thrown.ts';

/** Page → the form that each of its entries has and does not name. */
const PAGES: Readonly<Record<string, string | undefined>> = {
  'docs/errors.md': undefined,
  'docs/alarms.md': 'alarm',
  'docs/call-alarms.md': 'alarm',
  'docs/thrown-errors.md': 'thrown',
};

/** A machine may be slow: vitest has a limit of its own. */
const PATIENT_MS = 60_000;

/** What a page says of a code in its first line: statuses, `alarm`, `thrown`, and who has to act. */
interface Entry {
  readonly page: string;
  readonly said: readonly string[];
  readonly text: string;
}

const ENTRY = /^### `(\w+)`\n\n\*\*(.+)\.\*\* ([^\n]+)$/gm;
const texts = Object.entries(PAGES).map(([page, form]) => {
  const text = readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8');
  return { page, form, text };
});
const entries = new Map(
  texts.flatMap(({ page, form, text: whole }) =>
    [...whole.matchAll(ENTRY)].map(([, code = '', said = '', text = '']): [string, Entry] => [
      code,
      { page, said: [...(form === undefined ? [] : [form]), ...said.split(' · ')], text },
    ]),
  ),
);
const saidOf = (code: string): readonly string[] => entries.get(code)?.said ?? [];

const WHO = ['you', 'seller', 'nobody', 'seller or you'];

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

/** A code of an answer is on the page of answers, an alarm's on one of those of alarms, any other on that of thrown errors. */
function pagesOf(forms: readonly string[]): readonly string[] {
  if (forms.some((form) => /^\d/.test(form))) return ['docs/errors.md'];
  return forms.includes('alarm') ? ['docs/alarms.md', 'docs/call-alarms.md'] : ['docs/thrown-errors.md'];
}

describe('the pages of codes', () => {
  it('have each code once, and no other', () => {
    const headings = texts.flatMap(({ text }) =>
      [...text.matchAll(/^### `(.*)`$/gm)].map(([, code = '']) => code),
    );
    const codes = [...FORMS].filter(([, forms]) => forms.length > 0).map(([code]) => code);
    expect(headings.toSorted()).toEqual(codes.toSorted());
    expect([...entries.keys()]).toEqual(headings);
  });

  it('have at most 200 lines', () => {
    const lines = texts.map(({ page, text }) => [page, text.trimEnd().split('\n').length] as const);
    expect(lines.filter(([, count]) => count > 200)).toEqual([]);
  });

  it.each([...entries])('%s: its page, how it shows, who acts, what happened and the fix', (code, entry) => {
    const { page, said, text } = entry;
    const forms = said.slice(0, -1);
    expect(forms.map((form) => form.replace(/^4\d\d$/, '4xx')).toSorted()).toEqual(FORMS.get(code));
    expect(pagesOf(forms)).toContain(page);
    expect(WHO).toContain(said.at(-1));
    expect(text).toMatch(/^[^_]\S* .+ _Fix:_ .+/);
  });

  it.each(alarms)('the log line of the alarm %s names its heading', (code) => {
    const lines: object[] = [];
    const none = (): void => undefined;
    const logger = safeLogger({ debug: none, info: none, warn: (fields) => lines.push(fields), error: none });
    alarmRaiser(logger, {}, () => 0)({ code, message: 'a text' });
    expect(lines).toEqual([{ code, docs: `${entries.get(code)?.page}#${code}` }]);
  });
});
