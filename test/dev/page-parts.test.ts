import { describe, expect, it } from 'vitest';
import {
  asNewEvent,
  eventReader,
  indented,
  type Model,
  sampleBody,
  visiblePieces,
  visibleText,
  wasReceivedWell,
  withEvent,
} from '../../src/dev/page/for-tests.ts';
import type { DeliveryRow, DevState, ScenarioRun } from '../../src/dev/for-tests.ts';
import { samplePayloads } from '../../src/testing/index.ts';
import { HOSTILE } from '../support/hostile-text.ts';

/** What would turn the direction, hide, or steer whoever prints it: written out, for the code has it by properties. */
const UNSEEN = [
  // oxlint-disable-next-line no-control-regex -- control characters are what it is for
  /[\u0000-\u001F\u007F-\u00A0\u00AD\u061C\u115F\u180E\u200B-\u200F\u2028-\u202F\u2060-\u206F\u3164\uFEFF]/u,
  /[\uFE00-\uFE0F]/u,
  /[\u{E0000}-\u{E0FFF}]/u,
  /\p{Cs}/u,
];

/** Code points of the first two planes, and of that which has tags. */
const RANGES = [
  [0, 0x1_ffff],
  [0xe_0000, 0xe_0fff],
] as const;

describe('texts of others', () => {
  it.each([
    ['plain, ü, 漢字, عربى', 'plain, ü, 漢字, عربى'],
    ['a\u202Eb\u2069', 'a⟨RLO⟩b⟨PDI⟩'],
    ['\u0000\u001B[2J\r\n\t', '⟨NUL⟩⟨ESC⟩[2J⟨CR⟩⟨LF⟩⟨TAB⟩'],
    ['x\u200By\u00ADz\uFEFF\u00A0', 'x⟨ZWSP⟩y⟨SHY⟩z⟨BOM⟩⟨NBSP⟩'],
    ['tag \u{E0041}, half \uD800!', 'tag ⟨U+E0041⟩, half ⟨U+D800⟩!'],
    ['fillers \u3164\u115F', 'fillers ⟨U+3164⟩⟨U+115F⟩'],
  ])('%j', (text, shown) => {
    expect(visibleText(text)).toBe(shown);
  });

  it('lines stay lines where a text may have them, and a return is marked', () => {
    expect(visiblePieces('a\n\tb\r\n', true)).toEqual([
      { text: 'a\n\tb', isHidden: false },
      { text: 'CR', isHidden: true },
      { text: '\n', isHidden: false },
    ]);
  });

  it('of no character does anything stay that would not be seen', () => {
    const all = RANGES.flatMap(([from, to]) =>
      Array.from({ length: to - from + 1 }, (_, at) => `${String.fromCodePoint(from + at)}.`),
    );
    for (const text of [all.join(''), HOSTILE]) {
      for (const unseen of UNSEEN) {
        expect(unseen.test(text) || text === HOSTILE).toBe(true);
        expect(unseen.test(visibleText(text))).toBe(false);
      }
    }
    expect(visibleText('漢字 العربية עברית ελληνικά 😀')).toBe('漢字 العربية עברית ελληνικά 😀');
  });
});

describe('the sample of a body', () => {
  it('is as samplePayloads makes it', () => {
    const { text, textId } = sampleBody();
    const timestamp = 'now';
    const made = samplePayloads({ newId: () => textId }).tool('completed', { timestamp });
    expect({ ...(JSON.parse(text) as object), timestamp }).toEqual({
      ...made,
      idempotency_key: `evt_${textId}`,
    });
  });

  it('is another event each time, with what was changed in it, until its key is another', () => {
    const first = sampleBody();
    const edited = { ...first, text: first.text.replace('"mb_1"', '"mb_2"') };
    const second = asNewEvent(edited);
    expect(second.text).toContain('"mb_2"');
    expect(second.text).not.toContain(first.textId);
    const own = { ...second, text: second.text.replace(/"evt_[^"]+"/, '"my-own-key-0123456789"') };
    expect(asNewEvent(own)).toEqual(own);
  });
});

const STREAM = [
  ': hello',
  '',
  'id: p-1',
  'event: delivery',
  'data: {"id":1}',
  '',
  ': a comment',
  'data: two',
  'data:lines',
  '',
  'event: lost',
  '',
  'id: p-2',
  'event: gap',
  'data: {}',
  'retry: 10',
  'other',
  '',
  'data: not yet whole',
];

const EVENTS = [
  { type: 'delivery', data: '{"id":1}', id: 'p-1' },
  { type: 'message', data: 'two\nlines', id: 'p-1' },
  { type: 'gap', data: '{}', id: 'p-2' },
];

describe('the stream of events', () => {
  it.each(['\n', '\r\n', '\r'])('is read with line ends %j, cut at whatever place', (end) => {
    const text = STREAM.join(end);
    expect(eventReader()(text)).toEqual(EVENTS);
    for (let at = 0; at <= text.length; at += 1) {
      const read = eventReader();
      expect([...read(text.slice(0, at)), ...read(text.slice(at))]).toEqual(EVENTS);
    }
    const read = eventReader();
    expect(text.split('').flatMap((character) => read(character))).toEqual(EVENTS);
  });
});

const row = (id: number, more: Partial<DeliveryRow> = {}): DeliveryRow => ({
  id,
  at: 0,
  state: 'answered',
  what: 'completed (tool)',
  bytes: 2,
  status: 200,
  expected: { status: '2xx' },
  asExpected: true,
  ...more,
});

const run = (number: number, state: ScenarioRun['state']): ScenarioRun => ({
  run: number,
  name: 'replay',
  scheme: 'signature',
  startedAt: 0,
  state,
  steps: [],
});

const dev = {
  receiver: { state: 'unknown', since: 0 },
  hookHeard: false,
  scenarios: [],
} as Partial<DevState>;

const model: Model = {
  dev: dev as DevState,
  rows: [],
  before: undefined,
  calls: [],
  alarm: undefined,
  said: '',
};

describe('what the page knows', () => {
  it('has rows newest first, the changed one in its place', () => {
    const rows = [2, 3, 1].reduce((known, id) => withEvent(known, 'delivery', row(id)), model);
    const after = withEvent(rows, 'delivery', row(2, { told: 'applied' }));
    expect(after.rows.map(({ id, told }) => [id, told])).toEqual([
      [3, undefined],
      [2, 'applied'],
      [1, undefined],
    ]);
  });

  it('says what came, in words that do not hide anything', () => {
    const bad = row(4, { status: 401, code: 'a\u202Eb', asExpected: false, next: 'Paste\u200B the line.' });
    expect(withEvent(model, 'delivery', bad).said).toBe(
      'Delivery 4, completed (tool): 401 a⟨RLO⟩b, not expected. Paste⟨ZWSP⟩ the line.',
    );
    expect(withEvent(model, 'delivery', row(4, { state: 'sending' })).said).toBe('');
    expect(withEvent(model, 'receiver', { state: 'down', since: 1 }).said).toBe('The receiver is away.');
  });

  it('has the last state of each run, and hears hooks and alarms', () => {
    const ran = [run(1, 'running'), run(2, 'waiting'), run(1, 'passed')].reduce(
      (known, one) => withEvent(known, 'scenario', one),
      model,
    );
    expect(ran.dev.scenarios).toEqual([run(2, 'waiting'), run(1, 'passed')]);
    const alarm = { hook: 'alarm', code: 'store_unavailable', message: 'm' } as const;
    expect(withEvent(model, 'hook', { told: alarm, delivery: 1 })).toMatchObject({
      dev: { hookHeard: true },
      alarm: undefined,
    });
    expect(withEvent(model, 'hook', { told: alarm }).alarm?.told).toBe(alarm);
    const heard = withEvent(model, 'hook', { told: alarm });
    const away = withEvent(heard, 'receiver', { state: 'down', since: 1 });
    expect(withEvent(away, 'receiver', { state: 'up', since: 2 }).dev.hookHeard).toBe(false);
  });

  it('knows that something was received well by a delivery without a mistake that was accepted', () => {
    expect(wasReceivedWell([row(1, { status: 401, asExpected: false })])).toBe(false);
    expect(wasReceivedWell([row(1, { status: 401, mistake: 'tampered-body' })])).toBe(false);
    expect(wasReceivedWell([row(1, { status: 200, mistake: 'none-that-is-refused' })])).toBe(false);
    expect(wasReceivedWell([row(1), row(2, { state: 'unanswered' })])).toBe(true);
  });
});

describe('a body that is indented', () => {
  const shown = (text: string): ReturnType<typeof indented> =>
    indented({ encoding: 'utf8', text, bytes: text.length, cut: false });

  it('is the same JSON, on lines', () => {
    expect(shown('{"a":[1,"{ }"]}')).toBe('{\n  "a": [\n    1,\n    "{ }"\n  ]\n}');
  });

  it.each(['{"a":1,"a":2}', '1.0', '{', `${'['.repeat(101)}${']'.repeat(101)}`, '['.repeat(30_000)])(
    'is shown as it was sent if it would change, or would be far larger: %.20s',
    (text) => {
      expect(shown(text)).toBeUndefined();
    },
  );
});
