import type { Outcome, RefusedCode } from '../../src/index.ts';
import { generateKey, signHmac } from '../../src/sender/sign.ts';
import { sampleChallenge } from '../../src/testing/for-tests.ts';
import { AGENT, testReceiver, payloads, sellerKey, URL_GIVEN } from '../receiver/setup.ts';
import type { Row } from './row.ts';

const TOKEN = 'a-token-of-thirty-two-characters';
const completed = (): ReturnType<typeof payloads.tool> => payloads.tool('completed');
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A delivery that is signed otherwise than it should be. */
const signed =
  (...changes: Parameters<Awaited<ReturnType<typeof testReceiver>>['deliver']>[1][]) =>
  async (): Promise<Outcome> =>
    (await testReceiver()).deliver(completed(), Object.assign({}, ...changes));

/** One whose body is none of what an envelope has to be. */
const envelope = (change: object) => async (): Promise<Outcome> =>
  (await testReceiver()).deliver({ ...completed(), ...change });

/** Headers of nobody's. */
const unsigned =
  (headers: Record<string, string>, method = 'POST') =>
  async (): Promise<Outcome> =>
    (await testReceiver()).receiver.verifyAndDispatch(bytes('{}'), headers, { method });

const JSON_TYPE = { 'Content-Type': 'application/json' };

/** Every code of an answer of 4xx: how a seller gets it, and what the owner reads. */
export const REFUSALS: Readonly<Record<RefusedCode, Row<Outcome>>> = {
  method_not_allowed: { test: unsigned(JSON_TYPE, 'GET'), message: 'method "GET"' },
  unsupported_media_type: {
    test: unsigned({ 'Content-Type': 'text/plain' }),
    message: 'Content-Type is "text/plain"',
  },
  unsupported_content_encoding: {
    test: unsigned({ ...JSON_TYPE, 'Content-Encoding': 'gzip' }),
    message: 'Content-Encoding is "gzip"',
  },
  payload_too_large: {
    test: async () => (await testReceiver({ maxBodyBytes: 100 })).deliver(completed()),
    message: 'over 100',
  },
  webhook_signature_header_malformed: { test: unsigned(JSON_TYPE), message: 'Signature-Input is absent' },
  webhook_signature_params_incomplete: {
    test: signed({ params: { nonce: undefined } }),
    message: 'lacks a parameter of the profile',
  },
  webhook_signature_tag_invalid: { test: signed({ params: { tag: 'other' } }), message: 'Got "other"' },
  webhook_signature_alg_not_allowed: {
    test: signed({ params: { alg: 'rsa-v1_5-sha256' } }),
    message: 'Got "rsa-v1_5-sha256"',
  },
  webhook_signature_window_invalid: {
    test: signed({ now: () => Date.now() - 600_000 }),
    message: 'expires=',
  },
  webhook_signature_components_incomplete: {
    test: signed({ components: ['@method'] }),
    message: '@target-uri is not covered',
  },
  webhook_signature_key_unknown: {
    test: signed({ params: { keyid: 'unpublished' } }),
    message: 'No sender has the keyid "unpublished"',
  },
  webhook_signature_key_purpose_invalid: {
    test: async () => {
      const { publicJwk, privateJwk } = await generateKey('ed25519', 'request-signing', { kid: 'k' });
      const at = await testReceiver({ senders: [{ agentUrl: AGENT, pins: [publicJwk] }] });
      return at.deliver(completed(), { key: privateJwk });
    },
    message: 'proto_use is not webhook-signing',
  },
  webhook_signature_key_revoked: {
    test: async () => {
      const { publicJwk } = await sellerKey();
      const sender = { agentUrl: AGENT, pins: [publicJwk], revocation: { revokedKids: ['seller-1'] } };
      return (await testReceiver({ senders: [sender] })).deliver(completed());
    },
    message: "keyid is in the operator's revoked_kids",
  },
  webhook_signature_rate_abuse: {
    test: async () => {
      const at = await testReceiver({ maxNoncesPerKey: 1 });
      await at.deliver(completed());
      return at.deliver(completed());
    },
    message: 'too many live nonces',
  },
  webhook_target_uri_malformed: {
    test: async () => {
      const at = await testReceiver();
      const { body, headers } = await at.sign(completed(), { url: 'https://other.example/webhooks/proto' });
      return at.receiver.verifyAndDispatch(body, { ...headers, Host: 'other.example' });
    },
    message: 'Host',
  },
  webhook_signature_invalid: {
    test: async () => {
      const stranger = await generateKey('ed25519', 'webhook-signing', { kid: 'seller-1' });
      return (await testReceiver()).deliver(completed(), { key: stranger.privateJwk });
    },
    message: 'The signature does not verify',
  },
  webhook_signature_digest_mismatch: {
    test: async () => {
      const at = await testReceiver();
      const { headers } = await at.sign(completed());
      return at.receiver.verifyAndDispatch(bytes('{"changed":true}'), headers);
    },
    message: 'Content-Digest does not match the body',
  },
  webhook_signature_replayed: {
    test: async () => {
      const at = await testReceiver();
      const once = await at.sign(completed());
      await at.send(once);
      return at.send(once);
    },
    message: 'the nonce was used before',
  },
  webhook_body_malformed: {
    test: async () => (await testReceiver()).deliver('{"status":', { allowMalformed: true }),
    message: 'the body is not JSON',
  },
  webhook_mode_mismatch: {
    test: async () => {
      const { body, headers } = signHmac({ url: URL_GIVEN, body: completed(), secret: TOKEN });
      return (await testReceiver()).receiver.verifyAndDispatch(body, headers);
    },
    message: 'x-proto-signature came from a sender registered with signature',
  },
  webhook_token_mismatch: {
    test: async () => {
      const { publicJwk } = await sellerKey();
      const notificationToken = { token: TOKEN, onMismatch: 'refuse' } as const;
      const at = await testReceiver({ senders: [{ agentUrl: AGENT, pins: [publicJwk], notificationToken }] });
      return at.deliver({ ...completed(), token: 'another' });
    },
    message: 'the token is not registered',
  },
  missing_idempotency_key: {
    test: envelope({ idempotency_key: undefined }),
    message: 'the envelope has no idempotency_key',
  },
  missing_envelope_fields: {
    test: envelope({ task_id: undefined }),
    message: 'the envelope lacks task_id or status',
  },
  invalid_envelope_status: {
    test: envelope({ status: 'active' }),
    message: "status is a media buy's (active), not a task's",
  },
  invalid_envelope: {
    test: envelope({ idempotency_key: 'short' }),
    message: 'idempotency_key is not a string of 16 to 255 characters',
  },
  payload_changed: {
    test: async () => {
      const at = await testReceiver({ edition: '3.2' });
      const first = completed();
      await at.deliver(first);
      return at.deliver({ ...first, message: 'something else' });
    },
    message: 'was used with another payload',
  },
  task_already_final: {
    test: async () => {
      const at = await testReceiver({ edition: '3.2' });
      const task = { task_id: 't', timestamp: '2026-01-01T00:00:00Z', result: { media_buy_id: 'mb_1' } };
      await at.deliver(payloads.tool('completed', task));
      const later = { ...task, timestamp: '2026-01-01T00:00:01Z', result: { media_buy_id: 'mb_2' } };
      return at.deliver(payloads.tool('completed', later));
    },
    message: 'the task has another terminal status, which is kept',
  },
  challenge_refused: {
    test: async () => (await testReceiver()).deliver(sampleChallenge(AGENT, undefined, {})),
    message: 'onChallenge is missing: give one',
  },
  sender_over_limit: {
    test: async () => {
      const at = await testReceiver({ maxRecordsPerSender: 1 });
      await at.deliver(payloads.report());
      return at.deliver(payloads.report());
    },
    message: 'the sender is over its cap of records',
  },
};
