import { describe, expect, it } from 'vitest';
import type { Event, TaskStatus } from '../../../src/events/index.ts';
import { cloudEvent, printable, signerOf } from '../../../src/serve/sink/for-tests.ts';
import { SAMPLE_FAMILIES } from '../../../src/testing/for-tests.ts';
import { HOSTILE } from '../../support/hostile-text.ts';
import { changed, eventOf, idOf, payloads } from './kit.ts';

type Members = Readonly<Record<string, unknown>>;

/** As it reaches the sink. */
const sent = (event: Event, repeated = false): Members =>
  JSON.parse(JSON.stringify(cloudEvent({ event, id: idOf(1), repeated }))) as Members;

/** Strings of CloudEvents 1.0, section "Type System". */
const isText = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.length > 0 &&
  value.isWellFormed() &&
  !/[\p{Cc}\p{Noncharacter_Code_Point}]/u.test(value);
/** RFC 3986, in the characters that it may have. */
const isUriReference = (value: unknown): boolean =>
  isText(value) && /^(?:[\w.~:/?#[\]@!$&'()*+,;=-]|%[0-9A-F]{2})+$/i.test(value) && URL.canParse(value);
/** RFC 3339. */
const isTime = (value: unknown): boolean =>
  isText(value) &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value) &&
  !Number.isNaN(Date.parse(value));

/** The JSON Schema of CloudEvents 1.0: its required attributes, and its optional ones where they are there. */
const RULES: Readonly<Record<string, (value: unknown) => boolean>> = {
  specversion: (value) => value === '1.0',
  id: isText,
  source: isUriReference,
  type: isText,
  subject: (value) => value === undefined || isText(value),
  time: (value) => value === undefined || isTime(value),
  datacontenttype: (value) => value === 'application/json',
  dataschema: (value) => value === undefined,
  data_base64: (value) => value === undefined,
};

/** Extension attributes: names of lower-case letters and digits, and simple types. */
const isExtension = (name: string, value: unknown): boolean =>
  /^[a-z0-9]{1,20}$/.test(name) && (isText(value) || typeof value === 'boolean');

function expectCloudEvent(event: Members): void {
  const { data, ...attributes } = event;
  const broken = Object.keys(RULES).filter((name) => RULES[name]?.(attributes[name]) !== true);
  const extensions = Object.entries(attributes).filter(([name]) => !Object.hasOwn(RULES, name));
  expect([...broken, ...extensions.filter(([name, value]) => !isExtension(name, value))]).toEqual([]);
  expect(
    extensions.map(([name]) => name).filter((name) => !/^(channel|repeated|warnings)$/.test(name)),
  ).toEqual([]);
  expect(data).toBeTypeOf('object');
}

const STATUSES: readonly TaskStatus[] = [
  'submitted',
  'working',
  'input-required',
  'auth-required',
  'completed',
  'failed',
  'canceled',
  'rejected',
];

const done = eventOf(payloads.tool('completed', { task_id: 'task-1', timestamp: '2026-01-02T03:04:05Z' }));
const report = (...ids: string[]): Event =>
  eventOf(payloads.report('final', { media_buy_deliveries: ids.map((media_buy_id) => ({ media_buy_id })) }));
const other = eventOf(payloads.family('creative.purged'));

describe('an event as a CloudEvent', () => {
  it.each(STATUSES.flatMap((status) => [['tool', status] as const, ['agent', status] as const]))(
    'has the status of a task in its type: %s, %s',
    (transport, status) => {
      const event = sent(eventOf(payloads[transport](status)));
      expectCloudEvent(event);
      expect(event).toMatchObject({ type: `proto.task.${status}`, source: 'https://seller.example/mcp' });
    },
  );

  it.each(['scheduled', 'final', 'delayed', 'adjusted', 'window_update'] as const)(
    'has the type of a report in its type: %s',
    (type) => {
      const event = sent(eventOf(payloads.report(type)));
      expectCloudEvent(event);
      expect(event).toMatchObject({ type: `proto.delivery-report.${type}` });
    },
  );

  it.each(SAMPLE_FAMILIES)('has the name of a family in its type: %s', (family) => {
    const read = eventOf(payloads.family(family));
    const event = sent(read);
    expectCloudEvent(event);
    expect(event).toMatchObject({ type: `proto.other.${read.kind === 'other' ? read.family : ''}` });
  });

  it('has no word behind its kind where there is none', () => {
    expect(sent(changed(other, { family: undefined }))).toMatchObject({ type: 'proto.other' });
    expect(sent(changed(other, { family: '' }))).toMatchObject({ type: 'proto.other' });
  });

  it('has what a handler gets as its data, without the bytes', () => {
    const { data } = sent(done);
    expect(data).toEqual(JSON.parse(JSON.stringify(done)));
    expect(data).not.toHaveProperty('rawBody');
    expect(data).toMatchObject({ kind: 'task', taskId: 'task-1', envelope: { task_id: 'task-1' } });
  });

  it('keeps members of the seller’s that mean something in JavaScript', () => {
    const body = Buffer.from(JSON.stringify(payloads.tool('completed'))).toString();
    const event = eventOf(JSON.parse(body.replace('{', '{"__proto__":{"a":1},"toJSON":1,')) as object);
    const { data } = sent(event) as { readonly data: { readonly envelope: object } };
    expect(Object.entries(data.envelope)).toContainEqual(['__proto__', { a: 1 }]);
    expect(data.envelope).toMatchObject({ toJSON: 1 });
  });

  it.each<readonly [string, Event, string | undefined]>([
    ['the task id', done, 'task-1'],
    ['the task id of a report that has one', changed(report('mb-1'), { taskId: 'task-2' }), 'task-2'],
    ['the media buy of a report', changed(report('mb-1', 'mb-1'), { taskId: undefined }), 'mb-1'],
    ['none of a report of two', changed(report('mb-1', 'mb-2'), { taskId: undefined }), undefined],
    ['none of a report of none', changed(report(), { taskId: undefined }), undefined],
    [
      'the media buy of a state',
      changed(other, { taskId: undefined, state: { id: 'i', mediaBuyId: 'mb-3', repeated: false } }),
      'mb-3',
    ],
    [
      'the media buy of a notification',
      eventOf(payloads.family('artifact_push', { media_buy_id: 'mb-4' })),
      'mb-4',
    ],
    ['the media buy of its data', changed(done, { taskId: '', data: { media_buy_id: 'mb-5' } }), 'mb-5'],
    ['none without any', changed(other, { taskId: undefined, data: null, envelope: {} }), undefined],
    [
      'none of a media buy that is no text',
      changed(done, { taskId: '', data: { media_buy_id: 5 }, envelope: {} }),
      undefined,
    ],
  ])('has as its subject %s', (_, event, subject) => {
    expect(sent(event)['subject']).toBe(subject);
  });

  it.each<readonly [string | undefined, string | undefined]>([
    ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05Z'],
    ['2026-01-02t03:04:05.123456789z', '2026-01-02T03:04:05.123456789Z'],
    ['2026-01-02 03:04:05+0130', '2026-01-02T03:04:05+01:30'],
    ['2024-02-29T00:00:00-05:00', '2024-02-29T00:00:00-05:00'],
    ['2026-02-29T00:00:00Z', undefined],
    ['2026-13-01T00:00:00Z', undefined],
    ['2026-01-02T24:00:00Z', undefined],
    ['2026-01-02T23:59:60Z', undefined],
    ['2026-01-02T03:04:05', undefined],
    ['2026-01-02', undefined],
    ['yesterday', undefined],
    [`2026-01-02T03:04:05Z\r\n${HOSTILE}`, undefined],
    ['', undefined],
    [undefined, undefined],
  ])('has the timestamp %j as the time %j', (timestamp, time) => {
    const event = sent(changed(done, { timestamp }));
    expect(event['time']).toBe(time);
    expectCloudEvent(event);
  });

  it('says by which channel it came, unless that is a webhook', () => {
    const channels = (['webhook', 'response', 'poll', 'pull'] as const).map(
      (source) => sent(changed(done, { source }))['channel'],
    );
    expect(channels).toEqual([undefined, 'response', 'poll', 'pull']);
  });

  it('says whether the sink may have had it, or another event told the same before', () => {
    const windows = [{ repeated: false }, { repeated: true }];
    expect([
      sent(done)['repeated'],
      sent(done, true)['repeated'],
      sent(changed(report('mb-1'), { windows }))['repeated'],
      sent(changed(report('mb-1'), { windows: windows.slice(0, 1) }))['repeated'],
      sent(changed(other, { state: { repeated: true } }))['repeated'],
      sent(changed(other, { state: { repeated: false } }))['repeated'],
    ]).toEqual([false, true, true, false, true, false]);
  });

  it('has the codes of its warnings', () => {
    const { operation_id: _, ...body } = payloads.tool('completed', { timestamp: 'yesterday' });
    const event = sent(eventOf(body));
    expect(event['warnings']).toBe('missing_operation_id invalid_timestamp');
    expect(sent(eventOf(payloads.tool('completed')))).not.toHaveProperty('warnings');
  });

  it.each<readonly [string, string]>([
    ['line ends', 'a\r\nb'],
    ['control characters', '\0\u001B[2J\u007F\u0085'],
    ['marks, noncharacters and characters beyond the BMP', 'é\u202E\uFFFE\u{1FFFF}🦀'],
    ['lone surrogates', '\uD83D.\uDE00'],
    ['a text that fills a log', HOSTILE],
    ['a megabyte', 'ab/ä '.repeat(200_000)],
  ])('is one with %s in every text of a seller’s', (_, text) => {
    const all = {
      taskId: text,
      status: text,
      timestamp: text,
      taskType: text,
      operationId: text,
      data: { [text]: text },
    };
    for (const event of [
      changed(done, all),
      changed(report(text), { taskId: undefined }),
      changed(report('mb-1'), { report: { notification_type: text } }),
      changed(other, { family: text, state: { mediaBuyId: text } }),
      changed(done, { taskId: '', sender: `https://seller.example/${text}` }),
    ]) {
      const cloud = sent(event);
      expectCloudEvent(cloud);
      expect(cloud['type']).toMatch(/^proto\.[a-z-]+(\.[A-Za-z0-9._-]+)?$/);
      expect(cloud['data']).toEqual(JSON.parse(JSON.stringify(event)));
    }
  });

  it('keeps the agent URL of a sender as it is, where it is one', () => {
    const url = "https://user@seller.example:8443/mcp/~a_b-c.d;v=1,2/%C3%A9?q=[1]&x='(!)*+$#frag";
    expect(sent(eventOf(payloads.tool('completed'), url))['source']).toBe(url);
    const odd = sent(eventOf(payloads.tool('completed'), 'https://seller.example/5%/ä^'));
    expect(odd['source']).toBe('https://seller.example/5%25/%C3%A4%5E');
  });
});

describe('signerOf', () => {
  it('gives the signature of the specification’s own example', () => {
    // Standard Webhooks, section "Signature scheme".
    const sign = signerOf(['whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD']);
    const body = Buffer.from('{"email":"test@example.com","username":"test_user"}');
    const id = 'msg_27UH4WbU6Z5A5EzD8u03UvzRbpk';
    expect(sign(id, body, 1_649_367_553_999)['webhook-signature']).toBe(
      'v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=',
    );
  });

  it('takes secrets of 24 and of 64 bytes', () => {
    const secrets = [24, 64].map((bytes) => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`);
    expect(signerOf(secrets)('a', Buffer.from('b'), 0)['webhook-signature']).toMatch(
      /^v1,[^ ]{44} v1,[^ ]{44}$/,
    );
  });
});

describe('printable', () => {
  it.each([
    ['a text', 'a text'],
    ['  a\r\n\tb\0  ', 'a b'],
    ['\u202Ea\u2028b\uD83D', 'a b'],
    ['é 🦀', 'é 🦀'],
    ['', ''],
  ])('%j is %j', (text, shown) => {
    expect(printable(text, 100)).toBe(shown);
  });

  it('cuts, and not within a character', () => {
    expect(printable('🦀'.repeat(10), 3)).toBe('🦀');
    expect(printable('x'.repeat(1_000_000), 200)).toHaveLength(200);
  });
});
