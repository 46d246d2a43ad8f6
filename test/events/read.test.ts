import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readJson } from '../../src/codec/for-tests.ts';
import { detectFormat, extractData, readEvent } from '../../src/events/index.ts';
import { agentTask, deliveryReport, encode, eventOf, KEY, toolEnvelope } from './helpers.ts';

const CODES = [
  'webhook_body_malformed',
  'missing_idempotency_key',
  'missing_envelope_fields',
  'invalid_envelope_status',
  'invalid_envelope',
];

/** Well-formed payloads with some members replaced by arbitrary JSON. */
const payloads = fc
  .tuple(
    fc.constantFrom(
      toolEnvelope(),
      toolEnvelope({ result: deliveryReport() }),
      agentTask('completed', { artifacts: [{ parts: [{ data: { a: 1 } }] }] }),
      { task: agentTask('working') },
      { idempotency_key: KEY, event: 'impairment' },
    ),
    fc.dictionary(
      fc.constantFrom(
        'idempotency_key',
        'task_id',
        'status',
        'result',
        'artifacts',
        'metadata',
        'task',
        'message',
        'event',
        'task_type',
        'timestamp',
        '__proto__',
      ),
      fc.jsonValue(),
      { maxKeys: 3, noNullPrototype: true },
    ),
  )
  .map(([payload, changes]) => ({ ...payload, ...changes }));

describe('no input of a sender makes it throw', () => {
  it('readEvent gives an event or a code', () => {
    const ends: Record<string, number> = {};
    fc.assert(
      fc.property(
        fc.oneof(fc.uint8Array(), fc.json().map(encode), payloads.map(encode)),
        fc.constantFrom(undefined, 'tool' as const, 'agent' as const),
        (bytes, format) => {
          const reading = readEvent(bytes, format === undefined ? {} : { format });
          const end = reading.ok ? 'event' : reading.code;
          ends[end] = (ends[end] ?? 0) + 1;
          if (reading.ok) {
            expect(reading.event.idempotencyKey).toMatch(/^[A-Za-z0-9_.:-]{16,255}$/);
            expect(reading.event.envelope).toEqual(readJson(new TextDecoder().decode(bytes)));
          } else expect(CODES).toContain(reading.code);
        },
      ),
      { numRuns: 1000 },
    );
    expect(ends['event']).toBeGreaterThan(50);
    expect(Object.keys(ends).length).toBeGreaterThan(3);
  });

  it('detectFormat and extractData take anything', () => {
    const formats = new Map<unknown, number>();
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), payloads), (payload) => {
        const format = detectFormat(payload);
        expect([undefined, 'tool', 'agent']).toContain(format);
        formats.set(format, (formats.get(format) ?? 0) + 1);
        if (format === 'tool')
          expect(extractData(payload)).toBe((payload as Record<string, unknown>)['result']);
        extractData(payload, 'agent');
      }),
      { numRuns: 1000 },
    );
    for (const format of [undefined, 'tool', 'agent']) expect(formats.get(format)).toBeGreaterThan(20);
  });
});

describe('readEvent', () => {
  it('extracts what extractData extracts', () => {
    fc.assert(
      fc.property(payloads, (payload) => {
        const reading = readEvent(encode(payload));
        fc.pre(reading.ok);
        if (reading.ok) expect(reading.event.data).toEqual(extractData(reading.event.envelope));
      }),
    );
  });

  it('changes neither the bytes nor the options', () => {
    const bytes = encode(toolEnvelope());
    const options = Object.freeze({ sender: 's', format: 'tool' as const });
    expect(readEvent(bytes, options).ok).toBe(true);
    expect(bytes).toEqual(encode(toolEnvelope()));
  });

  it('returns nothing about the sender that it was not given', () => {
    expect(eventOf(toolEnvelope({ sender: 'https://forged.example' })).sender).toBe('');
  });
});
