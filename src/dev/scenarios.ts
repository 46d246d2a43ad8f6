// Defines the scenarios that do not wait for the buyer's tool calls (dev.md §2.3). dev.ts adds the others, and
// scenario-runs.ts runs all.
import type { JsonObject } from '../codec/members.ts';
import { sampleChallenge } from '../testing/seller-delivery.ts';
import { DEFAULT_RETRY, isFinal } from '../testing/seller-post.ts';
import type { Scenario, ScenarioKit, StepDraft } from './contract.ts';
import type { DeliveryRow, DevScheme, Expected } from './wire.ts';

const ALL: readonly DevScheme[] = ['signature', 'hmac', 'bearer'];
const SIGNED: readonly DevScheme[] = ['signature'];
const MINUTE_MS = 60_000;
const OK: Expected = { status: '2xx' };

const step = (sends: string, what: string, payload: StepDraft['payload'], expected = OK): StepDraft => ({
  sends,
  what,
  payload,
  expected,
});

/** True if a seller gives up after this answer, and does not retry. */
const isOver = ({ state, status, code }: DeliveryRow): boolean =>
  state !== 'unanswered' &&
  isFinal({
    outcome: status !== undefined && status < 300 ? 'success' : 'failed',
    ...(status !== undefined && { status }),
    // After `invalid_token` a seller retries, because the token may be in rotation. `isFinal` recognises that case by
    // this header.
    headers: code === 'invalid_token' ? { 'www-authenticate': 'Bearer' } : {},
    body: '',
  });

async function retries({ payloads, send, sleep }: ScenarioKit): Promise<void> {
  // The event is serialised once, so that each attempt has the same bytes.
  const body = JSON.stringify(payloads.tool('completed'));
  for (let attempt = 1; ; attempt += 1) {
    const isLast = attempt === DEFAULT_RETRY.attempts;
    const draft = step(`attempt ${attempt}, signed anew`, 'completed (tool)', body);
    const row = await send({ ...draft, mayFail: !isLast });
    if (row.asExpected) return;
    if (isOver(row))
      throw new Error(
        `A seller gives up after ${row.status}, and the event is lost. Answer 503 if it may be sent again.`,
      );
    if (isLast) throw new Error('A seller gives up after its last attempt, and the event is lost.');
    await sleep(DEFAULT_RETRY.delayMs(attempt));
  }
}

async function duplicate({ payloads, send }: ScenarioKit): Promise<void> {
  const body = JSON.stringify(payloads.tool('completed'));
  await send(step('the event', 'completed (tool)', body));
  await send(step('the same event, signed anew: 2xx, and no handler runs', 'completed (tool)', body));
}

async function replay({ payloads, send, sign }: ScenarioKit): Promise<void> {
  const signed = await sign(payloads.tool('completed'));
  await send(step('the delivery', 'completed (tool)', signed));
  await send(
    step('the same bytes and headers: a replay', 'completed (tool)', signed, {
      status: 401,
      code: 'webhook_signature_replayed',
    }),
  );
}

async function outOfOrder({ payloads, send, now }: ScenarioKit): Promise<void> {
  const newer = payloads.tool('completed');
  const timestamp = new Date(now() - MINUTE_MS).toISOString();
  const older = payloads.tool('working', { task_id: newer['task_id'], timestamp });
  await send(step('completed', 'completed (tool)', newer));
  await send(step('working, a minute older: 2xx, and no handler runs', 'working (tool)', older));
}

async function twoAtOnce({ payloads, send }: ScenarioKit): Promise<void> {
  const first = payloads.tool('working');
  const second = payloads.tool('completed', { task_id: first['task_id'] });
  await Promise.all([
    send(step('working, at the same time', 'working (tool)', first)),
    send(step('completed of the same task', 'completed (tool)', second)),
  ]);
}

/**
 * The wait after which a receiver fetches keys again for an unknown key id. A receiver fetches keys at most once in 30
 * s.
 */
const REFETCH_MS = 31_000;

async function keyRotation({ payloads, send, addKey, sleep, waiting }: ScenarioKit): Promise<void> {
  const signs = (sends: string, key?: JsonObject, or?: number): Promise<DeliveryRow> =>
    send({
      ...step(sends, 'working (tool)', payloads.tool('working'), { ...OK, ...(or !== undefined && { or }) }),
      ...(key && { key }),
      mayFail: or !== undefined,
    });
  await signs('signed by the key that is published');
  const added = await addKey();
  const first = await signs(
    'signed by a new key, which is published beside it: 503 if keys were fetched in the last 30 s',
    added,
    503,
  );
  if (!first.asExpected || first.status === 503) {
    waiting('30 s: a receiver asks for keys at most once in 30 s. Then the new key is sent once more.');
    await sleep(REFETCH_MS);
    waiting(undefined);
    await signs('the new key once more: keys are fetched again at most once in 30 s', added);
  }
  await signs('the older key, which is still published');
}

async function proofOfControl({ seller, auth, send }: ScenarioKit): Promise<void> {
  const body = sampleChallenge(seller.agentUrl, auth);
  await send({
    ...step('a proof of control: 2xx with its echo, if onChallenge approves it', 'proof of control', body),
    signed: true,
  });
}

/** The scenarios by name. The page starts a scenario by its name. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  retries: {
    says: 'Sends an event, and again as sellers do until an answer ends it.',
    schemes: ALL,
    run: retries,
  },
  duplicate: { says: 'Sends an event twice, each signed anew.', schemes: ALL, run: duplicate },
  replay: { says: 'Sends the same bytes and headers twice.', schemes: SIGNED, run: replay },
  'out-of-order': { says: 'Sends a status of a task, then an older one.', schemes: ALL, run: outOfOrder },
  'two-at-once': { says: 'Sends two statuses of one task at the same time.', schemes: ALL, run: twoAtOnce },
  'key-rotation': {
    says: 'Signs by a new key beside the older one, and by the older one again.',
    schemes: SIGNED,
    run: keyRotation,
  },
  'proof-of-control': {
    says: 'Asks whether you want events at this URL, as before a subscription.',
    schemes: ALL,
    run: proofOfControl,
  },
};
