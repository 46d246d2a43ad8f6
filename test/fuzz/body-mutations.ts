import type { Random } from '../reliability/processes/random.ts';
import type { TaskStatus } from '../../src/events/index.ts';
import { sampleChallenge } from '../../src/testing/for-tests.ts';
import { bodyOf, payloadsOf, randomId, type Draft } from './draft.ts';
import { EVERYWHERE, SIGNED, type Mutation } from './mutation.ts';
import { noisyBytes } from './noise.ts';
import { AGENTS, SIGNERS } from './sellers.ts';

/** Bytes; over it 413. */
export const MAX_BODY_BYTES = 4_096;

type Before = NonNullable<Mutation['before']>;

/** A payload of the tool transport with these members, and without those that are undefined. */
const tool =
  (members: (random: Random) => Readonly<Record<string, unknown>>): Before =>
  (draft, random) => {
    const status: TaskStatus = random.pick(['working', 'completed']);
    draft.payload = { ...payloadsOf(random).tool(status), ...members(random) };
  };

/** Of the seller that signs; at legacy senders, which may not send it so, of the one that is registered. */
const challenge =
  (members: (random: Random) => Readonly<Record<string, unknown>>): Before =>
  (draft, random) => {
    const agentUrl = draft.signer === SIGNERS[2] ? AGENTS[1] : AGENTS[0];
    const own = { challenge: `chl_${randomId(random)}${randomId(random)}`, ...members(random) };
    draft.payload = sampleChallenge(agentUrl, undefined, own);
  };

const text =
  (change: (json: string, random: Random) => string): Before =>
  (draft, random) =>
    void (draft.body = Buffer.from(change(Buffer.from(bodyOf(draft)).toString(), random)));

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

/** A member more, behind the first brace. */
const withMember = (json: string, member: string): string => json.replace('{', `{${member},`);

const NO_JSON: readonly ((json: string) => string)[] = [
  (json) => json.slice(0, -1),
  (json) => `${json}x`,
  (json) => `\uFEFF${json}`,
  (json) => `[${json}]`,
  (json) => withMember(json, '"x":NaN'),
  (json) => withMember(json, '"x":01'),
  (json) => withMember(json, '"x":"\t"'),
  (json) => withMember(json, `"x":${nested(256)}`),
  () => '',
  () => '"text"',
];

const TWICE: readonly string[] = [
  '"idempotency_key":"another-key-of-good-length"',
  '"x":1,"x":1',
  '"x":{"y":1,"y":2}',
  '"x":[{"y":1,"\\u0079":2}]',
  '"a\\\\":1,"a\\u005c":2',
  '"__proto__":1,"__proto__":2',
];

const HARMLESS: readonly string[] = [
  '"__proto__":{"status":"failed"}',
  '"constructor":null',
  '"x":1e400',
  '"x":"\\ud800"',
  `"x":${nested(255)}`,
  '"x":"a, \\"b\\": c"',
];

export const REFUSED_PROOF = 'a proof of control that nobody may say yes to';

const rest: readonly (Omit<Mutation, 'part' | 'endpoints'> & Partial<Pick<Mutation, 'endpoints'>>)[] = [
  {
    name: 'a proof of control',
    endpoints: SIGNED,
    gives: 'taken',
    before: challenge((random) =>
      random.pick([{}, { future: {} }, { status: { state: 'completed' }, id: 't' }]),
    ),
  },
  {
    name: REFUSED_PROOF,
    gives: 'challenge_refused',
    before: challenge((random) =>
      random.pick<Readonly<Record<string, unknown>>>([
        { seller_agent_url: 'https://three.example/mcp' },
        { seller_agent_url: null },
        { challenge: 'too short' },
        { challenge: 17 },
        { event_types: 'impairment' },
        { delivery_auth: { mode: 'Bearer', credential_fingerprint: '00' } },
      ]),
    ),
  },
  {
    name: 'no idempotency key',
    gives: 'missing_idempotency_key',
    before: tool(() => ({ idempotency_key: undefined })),
  },
  {
    name: 'an envelope that lacks a member',
    gives: 'missing_envelope_fields',
    before: tool((random) => ({ [random.pick(['task_id', 'status'])]: undefined })),
  },
  {
    name: 'the status of a media buy',
    gives: 'invalid_envelope_status',
    before: tool((random) => ({ status: random.pick(['active', 'paused', 'reporting_delayed']) })),
  },
  {
    name: 'a member of the wrong type',
    gives: 'invalid_envelope',
    before: tool((random) =>
      random.pick<Readonly<Record<string, unknown>>>([
        { idempotency_key: 'short' },
        { idempotency_key: 17 },
        { task_id: 17 },
        { task_id: '' },
        { status: null },
      ]),
    ),
  },
  {
    name: 'no JSON object',
    gives: 'webhook_body_malformed',
    before: text((json, random) => random.pick(NO_JSON)(json)),
  },
  {
    name: 'no UTF-8',
    gives: 'webhook_body_malformed',
    before: (draft) => void (draft.body = Buffer.from(`{"x":"\xff"}`, 'latin1')),
  },
  {
    name: 'a name twice',
    gives: 'webhook_body_malformed',
    before: text((json, random) => withMember(json, random.pick(TWICE))),
  },
  {
    name: 'a member more',
    gives: 'taken',
    before: text((json, random) => withMember(json, random.pick(HARMLESS))),
  },
  { name: 'white space around', gives: 'taken', before: text((json) => `\r\n\t ${json}\n`) },
  { name: 'exactly the cap', gives: 'taken', before: text((json) => json.padEnd(MAX_BODY_BYTES)) },
  {
    name: 'over the cap',
    gives: 'payload_too_large',
    before: text((json) => json.padEnd(MAX_BODY_BYTES + 1)),
  },
  {
    name: 'noise that is signed',
    gives: 'open',
    before: (draft: Draft, random) => void (draft.body = noisyBytes(bodyOf(draft), random)),
  },
];

export const BODY_MUTATIONS: readonly Mutation[] = rest.map((one) => ({
  part: 'body',
  endpoints: EVERYWHERE,
  ...one,
}));

export const UNSIGNED_BODY: readonly Mutation[] = [
  {
    name: 'a byte of the body, unsigned',
    part: 'body',
    endpoints: SIGNED,
    gives: 'webhook_signature_digest_mismatch',
    after: (request, random) => {
      const body = Uint8Array.from(request.body);
      const at = random.below(body.length);
      body[at] = (body[at] ?? 0) ^ (1 + random.below(255));
      return { ...request, body };
    },
  },
];
