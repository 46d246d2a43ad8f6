import { ENVELOPES } from '../../src/testing/for-tests.ts';
import { envelopesFromTable } from './mistakes.ts';
import { BROKEN, FAMILIES } from './families.ts';
import { type Json, without } from './kit.ts';
import { envelope, reportResult } from './sign.ts';

const tool = (name: string, more: Json = {}): Json => envelope(`envelope ${name}`, more);
const text = { kind: 'text', text: 'words' };
const part = (data: unknown): Json => ({ kind: 'data', data });
const status = (state: unknown, ...parts: readonly Json[]): Json => ({
  state,
  timestamp: '2026-09-21T14:13:00Z',
  ...(parts.length > 0 && { message: { kind: 'message', messageId: 'message_1', role: 'agent', parts } }),
});
const artifacts = (...lists: readonly (readonly Json[])[]): Json => ({
  artifacts: lists.map((parts, i) => ({ artifactId: `artifact_${i}`, parts })),
});
const task = (state: unknown, more: Json = {}): Json => ({
  id: 'task_1',
  contextId: 'ctx_1',
  idempotency_key: 'agent_key_0123456789abcdef',
  status: status(state),
  ...more,
});
const update = (state: unknown, ...parts: readonly Json[]): Json => ({
  kind: 'status-update',
  taskId: 'task_1',
  contextId: 'ctx_1',
  idempotency_key: 'agent_key_0123456789abcdef',
  status: status(state, ...parts),
  final: false,
});

type Extraction = readonly [id: string, payload: unknown, format: string | null, data: unknown];

const A = { media_buy_id: 'mb_1' };
const B = { media_buy_id: 'mb_2' };
const FINAL = ['completed', 'failed', 'canceled', 'rejected'];
const INTERIM = ['working', 'submitted', 'input-required', 'auth-required'];
const prefixed = (state: string): string => `TASK_STATE_${state.toUpperCase().replaceAll('-', '_')}`;

const EXTRACTION: readonly Extraction[] = [
  ['tool: result', tool('x', { result: A }), 'tool', A],
  ['tool: no result', without(tool('x'), 'result'), 'tool', null],
  ['tool: result is null', tool('x', { result: null }), 'tool', null],
  [
    'tool: result goes through unchanged',
    tool('x', { result: { response: { a: 1 }, n: null, list: [] } }),
    'tool',
    { response: { a: 1 }, n: null, list: [] },
  ],
  ['tool: an unknown status is a string too', tool('x', { status: 'reviewing', result: A }), 'tool', A],
  ['tool: artifacts beside are not looked at', tool('x', { result: A, ...artifacts([part(B)]) }), 'tool', A],
  ...FINAL.map((state): Extraction => [
    `agent: ${state}, last data part of the first artifact`,
    task(state, artifacts([part(A), text, part(B)], [part({ second: true })])),
    'agent',
    B,
  ]),
  ...FINAL.map((state): Extraction => [
    `agent: ${prefixed(state)}`,
    task(prefixed(state), artifacts([part(A)])),
    'agent',
    A,
  ]),
  ...INTERIM.map((state): Extraction => [
    `agent: ${state}, first data part of the message`,
    update(state, text, part(A), part(B)),
    'agent',
    A,
  ]),
  ...INTERIM.map((state): Extraction => [
    `agent: ${prefixed(state)}`,
    update(prefixed(state), part(A)),
    'agent',
    A,
  ]),
  ['agent: final without artifacts, from the message', update('completed', part(A), part(B)), 'agent', A],
  [
    'agent: final, artifact without data, from the message',
    { ...update('failed', part(A)), ...artifacts([text]) },
    'agent',
    A,
  ],
  [
    'agent: interim, artifacts are not looked at',
    { ...update('working', text), ...artifacts([part(B)]) },
    'agent',
    null,
  ],
  ['agent: only text', task('completed', artifacts([text])), 'agent', null],
  ['agent: no parts', task('completed'), 'agent', null],
  ['agent: a data part without kind', task('completed', artifacts([{ data: A }])), 'agent', A],
  [
    'agent: data that is an array is no data part',
    task('completed', artifacts([part(A), part([1, 2])])),
    'agent',
    A,
  ],
  [
    'agent: data that is null is no data part',
    task('completed', artifacts([part(A), part(null)])),
    'agent',
    A,
  ],
  [
    'agent: data that is a string is no data part',
    task('completed', artifacts([part(A), part('text')])),
    'agent',
    A,
  ],
  ['agent: an empty object is data', task('completed', artifacts([part({})])), 'agent', {}],
  ['agent: wrapper mistake', task('completed', artifacts([part({ response: A })])), 'agent', null],
  ['agent: wrapper mistake in an interim state', update('working', part({ response: A })), 'agent', null],
  [
    'agent: response beside other members is no mistake',
    task('completed', artifacts([part({ response: A, more: 1 })])),
    'agent',
    { response: A, more: 1 },
  ],
  [
    'agent: response that is no object is no mistake',
    task('completed', artifacts([part({ response: 'yes' })])),
    'agent',
    { response: 'yes' },
  ],
  ['agent: wrapped in task', { task: task('completed', artifacts([part(A)])) }, 'agent', A],
  ['agent: wrapped in statusUpdate', { statusUpdate: update('working', part(A)) }, 'agent', A],
  ['agent: a state in lower case with underscores', update('input_required', part(A)), 'agent', A],
  ['agent: an unknown state', task('reviewing', artifacts([part(A)])), 'agent', null],
  ['agent: a message', { message: { messageId: 'm', parts: [part(A)] } }, 'agent', null],
  [
    'agent: an artifact',
    { artifactUpdate: { artifact: { artifactId: 'a', parts: [part(A)] } } },
    'agent',
    null,
  ],
  ['neither: no status', { a: 1 }, null, null],
  ['neither: not an object', [1, 2], null, null],
];

/** `extraction.json`. */
export function extraction(): Json {
  return {
    description:
      'Which transport a payload is of (tool, agent, or null), and the data that the extraction rules give (null: none).',
    vectors: EXTRACTION.map(([id, payload, expected_format, expected_data]) => ({
      id,
      payload,
      expected_format,
      expected_data,
    })),
  };
}

interface Positive {
  readonly id: string;
  readonly edition?: string;
  readonly payload?: unknown;
  readonly expected_warnings?: readonly string[];
}

const POSITIVE: readonly Positive[] = [
  ...['submitted', 'working', 'input-required', 'completed', 'failed', 'canceled', 'rejected'].map(
    (state) => ({
      id: `tool: ${state}`,
      payload: tool(state, { status: state, result: {} }),
      expected_warnings: [],
    }),
  ),
  {
    id: 'tool: only what is required',
    edition: '3.1',
    payload: { idempotency_key: '0123456789abcdef', task_id: 't', status: 'working' },
    expected_warnings: ['missing_operation_id', 'missing_task_type', 'missing_timestamp'],
  },
  {
    id: 'tool: edition 3.0 has no operation_id',
    edition: '3.0',
    payload: tool('no operation_id', { operation_id: null }),
    expected_warnings: [],
  },
  {
    id: 'agent: an answer of get_media_buy_delivery is no report',
    payload: task('completed', {
      metadata: { operation_id: 'op_1' },
      ...artifacts([
        part({ ...without(reportResult('x', { aggregated_totals: { spend: 1 } }), 'notification_type') }),
      ]),
    }),
    expected_warnings: [],
  },
  {
    id: 'tool: unknown members',
    payload: tool('unknown members', { anything: { else: [1] } }),
    expected_warnings: [],
  },
  {
    id: 'tool: unknown status',
    payload: tool('unknown status', { status: 'reviewing' }),
    expected_warnings: ['unknown_status'],
  },
  { id: 'tool: key of 255 characters', payload: tool('255', { idempotency_key: 'k'.repeat(255) }) },
  {
    id: 'tool: every character of a key',
    payload: tool('alphabet', { idempotency_key: 'AZaz09_.:-AZaz09_.:-' }),
  },
  {
    id: 'tool: timestamp that is none',
    payload: tool('timestamp', { timestamp: 'yesterday' }),
    expected_warnings: ['invalid_timestamp'],
  },
  {
    id: 'tool: delivery report',
    payload: tool('report', {
      task_type: 'media_buy_delivery',
      result: reportResult('scheduled', { sequence_number: 1 }),
    }),
    expected_warnings: [],
  },
  {
    id: 'tool: delivery report with aggregated_totals',
    payload: tool('totals', {
      task_type: 'media_buy_delivery',
      result: reportResult('final', { aggregated_totals: {} }),
    }),
    expected_warnings: ['report_has_aggregated_totals'],
  },
  { id: 'agent: Task', payload: task('completed', artifacts([part(A)])), expected_warnings: [] },
  {
    id: 'agent: TaskStatusUpdateEvent',
    payload: update('working', part({ percentage: 40 })),
    expected_warnings: [],
  },
  {
    id: 'agent: prefixed state',
    payload: task('TASK_STATE_COMPLETED', artifacts([part(A)])),
    expected_warnings: [],
  },
  {
    id: 'agent: key in metadata',
    payload: {
      ...without(task('completed', artifacts([part(A)])), 'idempotency_key'),
      metadata: { idempotency_key: 'metadata_key_0123456789' },
    },
    expected_warnings: [],
  },
  {
    id: 'agent: no key, derived from the bytes',
    payload: without(task('completed', artifacts([part(A)])), 'idempotency_key'),
    expected_warnings: ['derived_idempotency_key'],
  },
  {
    id: 'agent: wrapped once',
    payload: { task: task('completed', artifacts([part(A)])) },
    expected_warnings: [],
  },
  {
    id: 'agent: completed without data',
    payload: task('completed', artifacts([text])),
    expected_warnings: ['completed_without_data'],
  },
  {
    id: 'tool: completed without data',
    payload: tool('without data', { result: null }),
    expected_warnings: ['completed_without_data'],
  },
  {
    id: 'agent: data in a later artifact',
    payload: task('completed', {
      artifacts: [
        { artifactId: 'a1', parts: [text] },
        { artifactId: 'a2', parts: [part(A)] },
      ],
    }),
    expected_warnings: ['later_artifact'],
  },
  {
    id: 'agent: work that has only begun, inside a completed Task',
    payload: task('completed', artifacts([part({ status: 'submitted', task_id: 'work_1' })])),
    expected_warnings: [],
  },
  {
    id: 'agent: message',
    payload: { message: { messageId: 'm', parts: [text] }, idempotency_key: 'message_key_0123456789' },
  },
  {
    id: 'agent: artifactUpdate',
    payload: {
      artifactUpdate: { taskId: 't', artifact: { artifactId: 'a', parts: [part(A)] } },
      idempotency_key: 'artifact_key_0123456789',
    },
  },
  { id: 'agent: unknown state', payload: task('reviewing'), expected_warnings: ['unknown_status'] },
  {
    id: 'agent: wrapper mistake',
    payload: task('completed', artifacts([part({ response: A })])),
    expected_warnings: ['wrapped_response', 'completed_without_data'],
  },
];

const NEGATIVE: readonly (readonly [id: string, payload: unknown, code: string])[] = [
  ['empty object', {}, 'missing_idempotency_key'],
  ...envelopesFromTable(ENVELOPES),
  [
    'bare delivery report',
    { notification_type: 'scheduled', sequence_number: 1, currency: 'USD', media_buy_deliveries: [] },
    'missing_envelope_fields',
  ],
  [
    'bare delivery report with a key',
    { idempotency_key: 'bare_report_0123456789', notification_type: 'final', media_buy_deliveries: [] },
    'missing_envelope_fields',
  ],
  [
    'agent: wrapped twice',
    { task: { task: task('completed') }, idempotency_key: 'twice_0123456789abcdef' },
    'invalid_envelope',
  ],
  [
    'agent: two wrappers side by side',
    { task: task('completed'), statusUpdate: update('working') },
    'invalid_envelope',
  ],
  ['agent: state is a number', task(3), 'invalid_envelope'],
  [
    'agent: no state',
    { ...task('x'), status: { timestamp: '2026-09-21T14:13:00Z' } },
    'missing_envelope_fields',
  ],
  [
    'agent: key of wrong characters',
    task('completed', { idempotency_key: 'not a key at all' }),
    'invalid_envelope',
  ],
];

/** `envelope.json`. */
export function envelopes(): Json {
  return {
    description:
      'Authentic bodies: what is taken (200, with these warnings), and what is refused (400, with this code).',
    positive: [...POSITIVE, ...FAMILIES],
    negative: [...NEGATIVE, ...BROKEN].map(([id, payload, expected_error]) => ({
      id,
      payload,
      expected_error,
      expected_status: 400,
    })),
  };
}
