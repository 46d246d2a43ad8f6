// `receiver.observe`: makes an event from a task's status that came by another channel than a webhook, in the form of a
// tool-transport envelope (admission.md §5.9).
// No seller sends such an event again. So it counts as accepted once it is stored, in both modes, and a worker runs its
// handler.

import { utf8 } from '../codec/encoding.ts';
import { isLongerJson } from '../codec/json-size.ts';
import { isJsonObject } from '../codec/members.ts';
import { requireUrl } from '../config/public-url.ts';
import { onlyKnown } from '../config/validate.ts';
import { ConfigError, Fault, messageOf, UnfitObservation } from '../shared/errors.ts';
import { parseInstant } from '../events/instant.ts';
import { type Observation, observationKey, type Observe, type Observed } from '../events/observation.ts';
import { isTerminal, taskStatus } from '../events/status.ts';
import type { ReceiverContext, ReadyContext } from './context.ts';
import { misfit } from '../registrations/answer-json.ts';
import { announce } from '../stages/announce.ts';
import { claimOf, readFrom } from '../stages/read.ts';
import type { FirstCopy } from '../stages/admitted-event.ts';
import { toldBefore } from '../stages/second-terminal.ts';
import type { AcceptResult, EventClaim } from '../stores/store.ts';
import { turnAfter } from '../shared/time-limits.ts';

const KNOWN: Readonly<Record<keyof Observation, true>> = {
  sender: true,
  taskId: true,
  operationId: true,
  taskType: true,
  status: true,
  data: true,
  context: true,
  timestamp: true,
  askedAt: true,
  source: true,
  observation: true,
};

const fail = (what: string): never => {
  throw new ConfigError(`observe: ${what}`);
};

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isTextOrAbsent = (value: unknown): boolean => value === undefined || isText(value);

type Checked = Exclude<keyof Observation, 'sender' | 'data' | 'context'>;

const NO_TEXT = 'is not a string, or is empty. Leave it out if there is none.';

const CHECKS: Readonly<Record<Checked, readonly [isValid: (value: unknown) => boolean, message: string]>> = {
  taskId: [isTextOrAbsent, NO_TEXT],
  operationId: [isTextOrAbsent, NO_TEXT],
  taskType: [isTextOrAbsent, NO_TEXT],
  status: [
    (value) => isText(value) && taskStatus(value) !== undefined,
    'is not a task status, e.g. completed.',
  ],
  timestamp: [
    (value) => value === undefined || (isText(value) && parseInstant(value) !== undefined),
    'is not an RFC 3339 date-time with a zone. Leave it out if the seller gives none.',
  ],
  askedAt: [
    (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0,
    'is not a time in ms. Give the Date.now() of just before you asked the seller.',
  ],
  source: [
    (value) => value === 'response' || value === 'poll' || value === 'pull',
    "is not 'response', 'poll' or 'pull'.",
  ],
  observation: [
    isText,
    'is not a string, or is empty. Give the updated_at of the answer. If it has none, count the changes that you saw: "change 1", "change 2".',
  ],
};

/**
 * Checks the argument of `observe`.
 * @throws ConfigError if a member is missing, unknown or wrong.
 */
function requireObservation(observation: Observation, allowLoopback: boolean): void {
  if (!isJsonObject(observation)) {
    fail('give an object like { sender, taskId, status, askedAt, source, observation }.');
  }
  onlyKnown('observe', observation, KNOWN);
  requireUrl('observe: sender', observation.sender, allowLoopback);
  for (const [name, [isValid, message]] of Object.entries(CHECKS)) {
    if (!isValid(observation[name as Checked])) fail(`${name} ${message}`);
  }
  if (observation.taskId === undefined && observation.operationId === undefined) {
    fail('give taskId, operationId, or both.');
  }
}

/**
 * Runs `work`, which uses only the observed data, not the store. So each of its errors is a mistake in the data.
 * @throws UnfitObservation in place of every error of `work`.
 */
export async function kept<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new UnfitObservation(messageOf(error), { cause: error });
  }
}

/** Checks that the data can be written as JSON. @throws ConfigError if not. */
function requireJson({ data, context }: Observation): void {
  for (const [name, value] of Object.entries({ data, context })) {
    const wrong = value === undefined ? undefined : misfit(value, name, 0);
    if (wrong !== undefined) fail(`${wrong}, which JSON cannot keep.`);
  }
}

/**
 * Makes the JSON body of the event that is stored.
 * @throws ConfigError for values that JSON cannot express, or a body over the limit.
 */
async function bodyOf(observation: Observation, key: string, maxBytes: number): Promise<Uint8Array> {
  const { data, context } = observation;
  // Data that is certainly over the limit is not converted to text at all.
  const body = isLongerJson([data, context], maxBytes) ? undefined : utf8(textOf(observation, key));
  if (body === undefined || body.byteLength > maxBytes)
    return fail(`it is over maxBodyBytes (${maxBytes}) as JSON.`);
  const { byteLength } = body;
  await turnAfter(byteLength);
  requireJson(observation);
  await turnAfter(byteLength);
  return body;
}

/** Makes the stored body as text. @throws ConfigError for values that JSON cannot express. */
function textOf(observation: Observation, key: string): string {
  const { status, taskId, operationId, taskType, timestamp, data, context } = observation;
  try {
    return JSON.stringify({
      idempotency_key: key,
      status,
      task_id: taskId,
      operation_id: operationId,
      task_type: taskType,
      timestamp,
      result: data,
      context,
    });
  } catch (error) {
    requireJson(observation);
    throw error;
  }
}

/**
 * Returns the event's idempotency key. A change of a task that is observed twice on one channel has the same key, so
 * the second event is a duplicate. A seller could compute the key, which is a hash of facts that the seller knows. But
 * no webhook can have it, because `/` is not allowed in an idempotency_key (admission.md §5.10).
 */
function keyOf(
  { taskId, operationId, status, source, observation }: Observation,
  { hashes }: ReadyContext,
): string {
  const of = taskId === undefined ? { operationId } : { taskId };
  return observationKey(source, hashes.sha256Hex(JSON.stringify([of, source, status, observation])));
}

/**
 * Parses the event's body, which this file has made.
 * @throws ConfigError if the body is refused, e.g. because the envelope is nested too deeply.
 */
function readingOf({ sender, source }: Observation, body: Uint8Array, ready: ReadyContext): FirstCopy {
  const reading = readFrom({ agentUrl: sender }, body, ready, { source });
  return reading.ok ? reading : fail('detail' in reading ? reading.detail : 'is not an event.');
}

/**
 * Returns the time at which the caller asked the seller, on the store's clock. A status that was applied after that
 * time must count as newer. So the result may be too early, but never too late.
 */
async function askedAt({ askedAt: asked }: Observation, { store, now }: ReadyContext): Promise<number> {
  if (!store.clock) return asked;
  const storeNow = await store.clock();
  return storeNow - Math.max(0, now() - asked);
}

/**
 * Adds `askedAt`, the time at which the seller was asked, to the claim of a non-terminal status without a `timestamp`.
 * A status that was applied after that time is newer and must win.
 */
async function ordered(
  observation: Observation,
  claim: EventClaim,
  ready: ReadyContext,
): Promise<EventClaim> {
  const { task } = claim;
  if (!task?.told || task.instant !== undefined || isTerminal(observation.status)) return claim;
  return { ...claim, task: { ...task, told: { ...task.told, askedAt: await askedAt(observation, ready) } } };
}

async function observe(observation: Observation, ready: ReadyContext): Promise<Observed> {
  const { config, hashes, registrations } = ready;
  const { sender } = observation;
  const key = keyOf(observation, ready);
  const { reading, unordered } = await kept(async () => {
    const body = await bodyOf(observation, key, config.maxBodyBytes);
    const reading = readingOf(observation, body, ready);
    await turnAfter(body.byteLength);
    const of = { edition: config.edition, hashes, registrations, isObserved: true };
    const unordered = claimOf(body, reading, of);
    await turnAfter(body.byteLength);
    return { reading, unordered };
  });
  const claim = await ordered(observation, unordered, ready);
  return await admitObserved(sender, { reading, claim }, ready);
}

/** Stores an observation as an accepted event, whose handler a worker runs. */
export async function admitObserved(
  sender: string,
  { reading, claim }: { readonly reading: FirstCopy; readonly claim: EventClaim },
  ready: ReadyContext,
): Promise<Observed> {
  const { config, raiseAlarm, store } = ready;
  const result = await store.accept({
    acceptId: ready.newId(),
    sender,
    mode: 'inbox',
    event: { ...claim, onChanged: 'first-wins' },
    leaseMs: config.leaseMs,
    limits: config.limits,
    retry: config.retry,
    retentionMs: config.retentionMs,
  });
  announce(result, { sender, key: claim.key }, raiseAlarm);
  return await observed(result, { reading, claim }, ready);
}

async function observed(
  result: AcceptResult,
  { reading, claim }: { readonly reading: FirstCopy; readonly claim: EventClaim },
  { queued, raiseAlarm }: ReadyContext,
): Promise<Observed> {
  const { event } = reading;
  const { kind } = result;
  if (kind === 'stale') return { kind, event };
  if (kind === 'in-flight') return { kind: 'duplicate', event };
  if (kind === 'over-cap') {
    return {
      kind: 'refused',
      code: 'sender_over_limit',
      detail: `the sender is over its cap of ${result.limit}`,
    };
  }
  if (kind !== 'queued' && kind !== 'done')
    throw new TypeError(`the store answered ${kind} to an observation`);
  if (kind === 'done' && result.first) await toldBefore(result.first, { reading, claim }, raiseAlarm);
  // The worker is woken even for a duplicate. Storing the duplicate may have made the event that it repeats durable, so
  // that a worker can now run that event.
  queued();
  return { kind: kind === 'queued' ? 'accepted' : 'duplicate', event };
}

/**
 * Makes `receiver.observe`.
 * @throws ConfigError (rejects) for the caller's mistakes, Fault if the store or the receiver cannot accept it now.
 */
export function observeWith(context: ReceiverContext): Observe {
  const { config, registrations, store, lifecycle, startup } = context;
  return async (observation) => {
    if (!registrations) {
      fail(
        'the receiver has no registrations. Give it those of createRegistrations: createReceiver({ …, registrations }).',
      );
    }
    if (!store.inbox)
      fail(`the ${store.name} store has no inbox to keep it in. Use a store of this package.`);
    requireObservation(observation, config.allowLoopback);
    if (lifecycle.stopping()) throw new Fault('shutting_down', 'The receiver stops.');
    lifecycle.arrived();
    try {
      return await observe(observation, await startup.ready());
    } finally {
      lifecycle.answered();
    }
  };
}
