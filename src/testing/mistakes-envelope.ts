// Rows of the table of wrong deliveries: authentic bodies that are no valid envelope, answered with 400 instead of 401.
// The table in mistakes.ts takes them.
import { type Altered, detail, type Given, type Rows, type WrongDelivery } from './mistake-row.ts';
import type { EnvelopeCode } from '../shared/codes.ts';

/** Makes a body of the tool transport in which some members are replaced. Undefined omits a member. */
const bodyWith =
  (members: Readonly<Record<string, unknown>>) =>
  ({ nonce, now }: Given): Altered => ({
    body: JSON.stringify({
      idempotency_key: `mistaken_${nonce}`,
      task_id: `task_${nonce}`,
      operation_id: 'op_1',
      task_type: 'create_media_buy',
      domain: 'media-buy',
      status: 'completed',
      timestamp: new Date(now * 1000).toISOString(),
      message: 'The media buy was created.',
      result: { media_buy_id: 'mb_1', packages: [{ package_id: 'pkg_1' }] },
      ...members,
    }),
  });

const envelope =
  (code: EnvelopeCode) =>
  (sends: string, members: Readonly<Record<string, unknown>>): WrongDelivery => ({
    sends,
    status: 400,
    code,
    part: 'body',
    made: bodyWith(members),
  });
const keyless = envelope('missing_idempotency_key');
const lacking = envelope('missing_envelope_fields');
const status = envelope('invalid_envelope_status');
const invalid = envelope('invalid_envelope');
const key = (text: unknown): Readonly<Record<string, unknown>> => ({ idempotency_key: text });

export const ENVELOPES: Rows = {
  'no-idempotency-key': keyless('No idempotency_key.', key(undefined)),
  'idempotency-key-null': detail(keyless('idempotency_key is null.', key(null))),
  'idempotency-key-number': detail(invalid('idempotency_key is a number.', key(1_234_567_890_123_456))),
  'short-key': invalid('An idempotency_key of 15 characters.', key('0123456789abcde')),
  'long-key': detail(invalid('An idempotency_key of 256 characters.', key('k'.repeat(256)))),
  'key-with-space': detail(invalid('An idempotency_key with a space.', key('0123456789 abcdef'))),
  'key-with-slash': detail(invalid('An idempotency_key with a slash.', key('0123456789/abcdef'))),
  'key-not-ascii': detail(
    invalid('An idempotency_key with a letter that is not ASCII.', key('0123456789äbcdef')),
  ),
  'key-with-line-feed': detail(
    invalid('An idempotency_key with a line feed at the end.', key('0123456789abcdef\n')),
  ),
  'no-task-id': lacking('No task_id.', { task_id: undefined }),
  'task-id-number': detail(invalid('task_id is a number.', { task_id: 1 })),
  'no-status': detail(lacking('No status.', { status: undefined })),
  'status-number': detail(invalid('status is a number.', { status: 1 })),
  'status-null': detail(invalid('status is null.', { status: null })),
  'media-buy-status': status('A media buy status at the top level.', { status: 'active' }),
  'media-buy-status-paused': detail(status('The media buy status paused.', { status: 'paused' })),
  'media-buy-status-reporting-delayed': detail(
    status('The media buy status reporting_delayed.', { status: 'reporting_delayed' }),
  ),
};
