import { PROFILE_COMPONENTS } from '../../sender/sign.ts';
import { ACCEPTED, type ProbeCase, refused } from './case.ts';
import type { ProbeKit } from './kit.ts';

type Payload = (kit: ProbeKit) => object | string;
type Options = Parameters<ProbeKit['sign']>[1];

function accepted(
  name: string,
  sends: string,
  payload: Payload,
  options: Options | ((kit: ProbeKit) => Options) = {},
): ProbeCase {
  return {
    name,
    sends,
    expect: ACCEPTED,
    run: async (kit) =>
      kit.send(await kit.sign(payload(kit), typeof options === 'function' ? options(kit) : options)),
  };
}

const completed: Payload = ({ payloads }) => payloads.tool('completed');

/** The same value in a text that `JSON.parse` and `JSON.stringify` would not give back. */
const spaced: Payload = ({ payloads }) =>
  `{ "z": 1.0, ${JSON.stringify(payloads.tool('completed'), undefined, 1).slice(1).replace('create_media_buy', 'create\\u005fmedia_buy')}\n`;

/** What every receiver has to take. */
export const ACCEPTED_CASES: readonly ProbeCase[] = [
  accepted('tool-completed', 'a completed task, tool transport', completed),
  accepted('tool-submitted', 'a submitted task, tool transport', ({ payloads }) =>
    payloads.tool('submitted'),
  ),
  accepted('agent-completed', 'a completed task, agent transport', ({ payloads }) =>
    payloads.agent('completed'),
  ),
  accepted('agent-working', 'a status update, agent transport', ({ payloads }) => payloads.agent('working')),
  accepted('report', 'a delivery report', ({ payloads }) => payloads.report()),
  accepted('family', 'an impairment, another family of webhooks', ({ payloads }) =>
    payloads.family('impairment'),
  ),
  accepted('unknown-status', 'a task status that does not exist yet', ({ payloads }) =>
    payloads.tool('completed', { status: 'archived' }),
  ),
  accepted('exact-bytes', 'a body that does not survive parsing and serialising', spaced),
  accepted('base64', 'signature and digest in padded standard base64', completed, { alphabet: 'base64' }),
  accepted('charset', 'Content-Type: application/json; charset=utf-8', completed, {
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
  }),
  accepted('more-components', 'one more covered component', completed, {
    headers: { 'X-Trace-Id': 'probe' },
    components: [...PROFILE_COMPONENTS, 'x-trace-id'],
  }),
  accepted('skewed-clock', 'created 30 s ahead', completed, ({ now }) => ({ now: () => now() + 30_000 })),
  {
    ...accepted('p256', 'a P-256 signature', completed, ({ keys }) => (keys.p256 ? { key: keys.p256 } : {})),
    needs: 'p256',
  },
  {
    ...accepted('request-key', 'a signature by a key for requests', completed, ({ keys }) =>
      keys.request ? { key: keys.request } : {},
    ),
    needs: 'request',
    expect: ({ edition }) =>
      edition === '3.0' ? refused('webhook_signature_key_purpose_invalid') : ACCEPTED,
  },
];
