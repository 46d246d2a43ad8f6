import type { Random } from '../reliability/processes/random.ts';
import { sampleChallenge } from '../../src/testing/for-tests.ts';
import { bodyOf, randomId, type Draft } from './draft.ts';
import { EVERYWHERE, SIGNED, type Mutation } from './mutation.ts';
import { noisyBytes } from './noise.ts';
import { AGENTS, SIGNERS } from './sellers.ts';

/** Bytes; over it 413. */
export const MAX_BODY_BYTES = 4_096;

type Before = NonNullable<Mutation['before']>;

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
    name: 'a member more',
    gives: 'taken',
    before: text((json, random) => withMember(json, random.pick(HARMLESS))),
  },
  { name: 'white space around', gives: 'taken', before: text((json) => `\r\n\t ${json}\n`) },
  { name: 'exactly the cap', gives: 'taken', before: text((json) => json.padEnd(MAX_BODY_BYTES)) },
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
