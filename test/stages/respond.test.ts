import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { RefusedCode, UnavailableCode } from '../../src/index.ts';
import { ANSWERS, respond } from '../../src/stages/for-tests.ts';

const SECRET_DETAIL = 'key-7 digest=abc reason';
const refused = (code: RefusedCode, challenge?: 'bearer') =>
  respond({ kind: 'refused', code, detail: SECRET_DETAIL, ...(challenge && { challenge }) }, 5_000);

/** admission.md §2.2, §2.3. */
const STATUS: Record<RefusedCode, number> = {
  method_not_allowed: 405,
  unsupported_media_type: 415,
  unsupported_content_encoding: 415,
  payload_too_large: 413,
  webhook_signature_header_malformed: 401,
  webhook_signature_params_incomplete: 401,
  webhook_signature_tag_invalid: 401,
  webhook_signature_alg_not_allowed: 401,
  webhook_signature_window_invalid: 401,
  webhook_signature_components_incomplete: 401,
  webhook_signature_key_unknown: 401,
  webhook_signature_key_purpose_invalid: 401,
  webhook_signature_key_revoked: 401,
  webhook_signature_rate_abuse: 429,
  webhook_target_uri_malformed: 401,
  webhook_signature_invalid: 401,
  webhook_signature_digest_mismatch: 401,
  webhook_signature_replayed: 401,
  webhook_body_malformed: 401,
  webhook_mode_mismatch: 401,
  webhook_token_mismatch: 401,
  missing_idempotency_key: 400,
  missing_envelope_fields: 400,
  invalid_envelope_status: 400,
  invalid_envelope: 400,
  payload_changed: 409,
  task_already_final: 409,
  challenge_refused: 403,
  sender_over_limit: 429,
};

const FAULTS: readonly UnavailableCode[] = [
  'keys_unavailable',
  'store_unavailable',
  'not_durable',
  'in_flight',
  'task_busy',
  'lease_lost',
  'handler_failed',
  'handler_timeout',
  'body_timeout',
  'body_consumed',
  'overloaded',
  'shutting_down',
  'misconfigured',
  'webhook_signature_revocation_stale',
  'webhook_target_uri_malformed',
];

describe('respond: the table of answers', () => {
  it.each(Object.entries(STATUS) as [RefusedCode, number][])('%s → %i', (code, status) => {
    const reply = refused(code);
    expect(reply.status).toBe(status);
    expect(JSON.stringify(reply)).not.toContain(SECRET_DETAIL);
    if (status === 401) {
      expect(reply).toEqual({
        status,
        headers: { 'WWW-Authenticate': `Signature error="${code}"` },
        body: '',
      });
    } else {
      expect(reply.headers).not.toHaveProperty('WWW-Authenticate');
    }
    if (status === 429) expect(reply.headers).toEqual({ 'Retry-After': '5' });
    if (status === 405) expect(reply.headers).toEqual({ Allow: 'POST' });
    if (status === 400 || status === 409) {
      expect(reply.headers).toEqual({ 'Content-Type': 'application/json' });
      expect(JSON.parse(reply.body)).toEqual({ error: { code, message: expect.any(String) } });
    }
  });

  it('answers a bearer 401 with its own challenge, never as a signature failure', () => {
    expect(refused('webhook_signature_invalid', 'bearer')).toEqual({
      status: 401,
      headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
      body: '',
    });
  });

  it.each(FAULTS)('a fault on our side is 503 with Retry-After: %s', (code) => {
    expect(respond({ kind: 'unavailable', code, detail: SECRET_DETAIL }, 6_001)).toEqual({
      status: 503,
      headers: { 'Retry-After': '7' },
      body: '',
    });
  });
});

describe('the table of answers in the README', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const rows = new Map(
    [...readme.matchAll(/^\| (\d{3}) +\|([^|]*)\|([^|]*)\|/gm)].map(([, status, , answer = '']) => [
      Number(status),
      answer,
    ]),
  );
  const codes = Object.keys(ANSWERS) as RefusedCode[];

  it('has a row for each status, and no other', () => {
    const statuses = new Set([200, 503, ...codes.map((code) => ANSWERS[code].status)]);
    expect([...rows.keys()]).toEqual([...statuses].sort((a, b) => a - b));
  });

  it.each(codes)('%s: the header and the body of its row, and no other', (code) => {
    const { status, headers, body } = refused(code);
    const row = rows.get(status) ?? '';
    const own = Object.entries(headers).filter(([name]) => name !== 'Content-Type');
    for (const [name] of own) expect(row).toContain(`\`${name}`);
    expect(row.includes('`{"error":{"code","message"}}`')).toBe(body !== '');
    expect(row.trim() === '').toBe(own.length === 0 && body === '');
  });
});
