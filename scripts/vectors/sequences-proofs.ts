import { AGENT, type Json, nonceOf } from './kit.ts';
import { accepted, refused, type Sequence, type Step } from './sequence-kit.ts';
import { envelope } from './sign.ts';

const typed = (name: string, type: string): Pick<Step, 'name' | 'payload' | 'signing'> => ({
  name: type,
  payload: envelope(`type ${name}`, { task_id: name }),
  signing: { headers: { 'Content-Type': type } },
});
const unsupported: Json = {
  status: 415,
  code: 'unsupported_media_type',
  www_authenticate: null,
  handled: false,
};

const TYPES: readonly Sequence[] = [
  {
    name: 'content types',
    description:
      'Types that the receiver is configured with, beside application/json. The signature covers the field as it was sent.',
    receiver: { content_types: ['application/a2a+json'] },
    steps: [
      { ...typed('json', 'application/json'), expected: accepted() },
      { ...typed('listed', 'application/a2a+json'), expected: accepted() },
      { ...typed('case', 'Application/A2A+JSON; charset=utf-8'), expected: accepted() },
      { ...typed('charset', 'application/a2a+json; charset=utf-16'), expected: unsupported },
      { ...typed('other', 'application/problem+json'), expected: unsupported },
      {
        ...typed('signed otherwise', 'application/a2a+json'),
        name: 'application/a2a+json, signed as application/json',
        signing: {
          headers: { 'Content-Type': 'application/a2a+json' },
          signedAs: { 'content-type': 'application/json' },
        },
        expected: refused('webhook_signature_invalid', 10),
      },
    ],
  },
];

const TOKEN = 'tok_of_the_test_vectors_alone_0001';
const PREVIOUS_TOKEN = 'tok_of_the_test_vectors_alone_0000';
const TOKEN_HEADER = 'X-A2A-Notification-Token';

const tokened = (name: string, token: string): Pick<Step, 'name' | 'payload' | 'signing'> => ({
  name: `${name} in the header`,
  payload: envelope(`token header ${name}`, { task_id: name }),
  signing: { headers: { [TOKEN_HEADER]: token } },
});
const within = (name: string, token: string): Pick<Step, 'name' | 'payload'> => ({
  name: `${name} in the envelope`,
  payload: envelope(`token body ${name}`, { task_id: `${name} within`, token }),
});
const tokens = (onMismatch: string): Json => ({
  notification_token: { token: TOKEN, previous_token: PREVIOUS_TOKEN, on_mismatch: onMismatch },
});
const fitting: readonly Step[] = [
  { ...tokened('the token', TOKEN), expected: accepted({ warnings: [] }) },
  { ...within('the token', TOKEN), expected: accepted({ warnings: [] }) },
  { ...tokened('the previous token', PREVIOUS_TOKEN), expected: accepted({ warnings: [] }) },
  {
    name: 'none',
    payload: envelope('token none', { task_id: 'none' }),
    expected: accepted({ warnings: ['token_missing'] }),
  },
];
const otherToken = tokened('another token', `${TOKEN}0`);
const headerSender: Json = {
  authentication: { schemes: ['Bearer'], credentials: TOKEN, header: TOKEN_HEADER },
};
const JSON_TYPE = { 'Content-Type': 'application/json' };
const challenged = (code: string): Json => ({
  status: 401,
  kind: 'refused',
  code,
  www_authenticate: 'Bearer error="invalid_token"',
  handled: false,
});

const TOKENS: readonly Sequence[] = [
  {
    name: 'notification token, warn',
    description: 'A registered token beside a signature: another one is taken with a warning.',
    sender: tokens('warn'),
    steps: [
      ...fitting,
      { ...otherToken, expected: accepted({ warnings: ['token_mismatch'] }) },
      {
        ...within('a prefix', TOKEN.slice(0, -1)),
        expected: accepted({ warnings: ['token_mismatch'] }),
      },
    ],
  },
  {
    name: 'notification token, refuse',
    description: 'Another token is refused before admission and burns nothing.',
    sender: tokens('refuse'),
    steps: [
      ...fitting,
      {
        ...otherToken,
        name: 'another token',
        signing: { ...otherToken.signing, params: { nonce: `"${nonceOf('token')}"` } },
        expected: refused('webhook_token_mismatch'),
      },
      {
        name: 'the event and the nonce are free',
        payload: otherToken.payload ?? '',
        signing: { headers: { [TOKEN_HEADER]: TOKEN }, params: { nonce: `"${nonceOf('token')}"` } },
        expected: accepted({ warnings: [] }),
      },
      {
        name: 'the right one in the header and another one in the envelope',
        payload: envelope('token both', { task_id: 'both', token: PREVIOUS_TOKEN.slice(1) }),
        signing: { headers: { [TOKEN_HEADER]: TOKEN } },
        expected: refused('webhook_token_mismatch'),
      },
    ],
  },
  {
    name: 'bearer token in a header of its own',
    description: 'The token is the whole value of the field; Authorization is not looked at.',
    sender: headerSender,
    steps: [
      {
        name: 'the token',
        payload: envelope('header token'),
        unsigned: { ...JSON_TYPE, [TOKEN_HEADER]: TOKEN },
        expected: accepted(),
      },
      {
        name: 'with the word Bearer in front',
        payload: envelope('header token 2'),
        unsigned: { ...JSON_TYPE, [TOKEN_HEADER]: `Bearer ${TOKEN}` },
        expected: challenged('webhook_signature_invalid'),
      },
      {
        name: 'in Authorization',
        payload: envelope('header token 2'),
        unsigned: { ...JSON_TYPE, Authorization: `Bearer ${TOKEN}` },
        expected: challenged('webhook_signature_header_malformed'),
      },
      {
        name: 'beside a signature',
        payload: envelope('header token 2'),
        signing: { headers: { [TOKEN_HEADER]: TOKEN } },
        expected: refused('webhook_mode_mismatch'),
      },
    ],
  },
];

const challengeText = (name: string): string => `chl_${nonceOf(name)}${nonceOf(`${name} `)}`.slice(0, 44);

const challenge = (name: string, more: Json = {}): Json => ({
  type: 'webhook.challenge',
  challenge: challengeText(name),
  account_id: 'acc_1',
  subscriber_id: 'sub_1',
  seller_agent_url: AGENT,
  delivery_auth: { mode: 'rfc9421' },
  event_types: ['impairment', 'creative.status_changed'],
  ...more,
});

const echoed = (name: string): Json => ({
  status: 200,
  kind: 'challenge',
  code: null,
  body: JSON.stringify({ challenge: challengeText(name) }),
  www_authenticate: null,
  sender: AGENT,
  handled: false,
});

const denied: Json = {
  status: 403,
  kind: 'refused',
  code: 'challenge_refused',
  www_authenticate: null,
  handled: false,
};

const asked = (name: string, more: Json, expected: Json, at = 0): Step => ({
  name,
  at,
  payload: challenge(name, more),
  expected,
});

const HMAC_SENDER: Json = {
  authentication: { schemes: ['HMAC-SHA256'], credentials: 'a-shared-secret-of-these-test-vectors-only' },
};

/** An object without a key whose type is `webhook.challenge`; everything else about it comes later. */
const CHALLENGES: readonly Sequence[] = [
  {
    name: 'proof of control, accepted',
    description:
      'The owner says yes: the challenge is echoed, exactly, and the nonce is burned. It is recognised before the format is.',
    receiver: { challenge: 'accept' },
    steps: [
      asked('first', {}, echoed('first')),
      {
        name: 'byte for byte again',
        at: 1,
        again: 'first',
        expected: refused('webhook_signature_replayed', 12),
      },
      asked('with unknown members', { future: { member: 1 } }, echoed('with unknown members'), 2),
      asked(
        'that looks like a task',
        { status: { state: 'completed' }, id: 't' },
        echoed('that looks like a task'),
      ),
      asked('of the whole agent', { account_id: null, scope: 'agent' }, echoed('of the whole agent')),
      asked("of another seller's", { seller_agent_url: `${AGENT}/` }, denied),
      asked('too short', { challenge: 'c'.repeat(31) }, denied),
      asked('of other characters', { challenge: `${'c'.repeat(40)} ` }, denied),
      asked('seller_agent_url absent', { seller_agent_url: null }, denied),
      {
        ...asked('with a key', { idempotency_key: 'evt_0123456789abcdef' }, accepted()),
        name: 'with a key: an ordinary body',
      },
      {
        ...asked('another type', { type: 'webhook.challenges' }, {}),
        expected: { status: 400, code: 'missing_idempotency_key', handled: false },
      },
    ],
  },
  {
    name: 'proof of control, refused',
    description: 'The owner says no: 403, and the nonce is burned together with that answer.',
    receiver: { challenge: 'refuse' },
    steps: [
      asked('refused', {}, denied),
      {
        name: 'byte for byte again',
        at: 1,
        again: 'refused',
        expected: refused('webhook_signature_replayed', 12),
      },
    ],
  },
  {
    name: 'proof of control, nobody to ask',
    description: 'A receiver that was not told what to say.',
    steps: [asked('nobody to ask', {}, denied)],
  },
  {
    name: 'proof of control at a legacy sender',
    description: 'It is always signed; nothing else may be signed there.',
    sender: HMAC_SENDER,
    receiver: { challenge: 'accept' },
    steps: [
      asked('signed', {}, echoed('signed')),
      { name: 'an event, signed', payload: envelope('legacy'), expected: refused('webhook_mode_mismatch') },
      {
        ...asked('signed for another URL', {}, {}),
        signing: { url: 'https://buyer.example/webhooks/other' },
        expected: refused('webhook_signature_invalid', 10),
      },
    ],
  },
];

/** What is decided beside the signature: content types, tokens, proofs of control. */
export const PROOFS: readonly Sequence[] = [...TYPES, ...TOKENS, ...CHALLENGES];
