// Turns a verdict (the decision about a delivery) into the outcome: makes the HTTP answer, logs, raises alarms, and
// calls the owner's hooks.
// See admission.md §2.5 and §2.14. Called once for each delivery by the receiver and the verifier, however the delivery
// ends.

import { docsOf } from '../shared/alarms.ts';
import { noteOutcome } from './health.ts';
import { isKeptUrl, MAX_TEXT, printableText } from '../codec/printable.ts';
import { Fault, isOfKind, textOf } from '../shared/errors.ts';
import type { Door } from '../config/receiver-options.ts';
import {
  unavailable,
  type Outcome,
  type OutcomeOf,
  type Refusal,
  type Reply,
  type Unavailability,
  type Verdict,
} from '../shared/outcome.ts';
import { once } from '../shared/single-flight.ts';
import type { VerifyingParts } from './verifying.ts';
import type { OutcomeContext } from './refused.ts';
import { idsOf } from '../stages/ids.ts';
import { respond } from '../stages/respond.ts';

/**
 * Resolves to the code that few deliveries need. It is imported once: each further `import()` takes 6 µs or more,
 * several per cent of a verification, and anybody can cause refusals.
 */
export const loadRare: () => Promise<typeof import('./rare.ts')> = once(() => import('./rare.ts'));

/**
 * Converts a thrown error to a verdict that is answered with 503. An error other than a `Fault` is a bug of this
 * package. Such an error gets 503 too, so that the sender retries and no event is lost.
 */
export function faultVerdict(error: unknown, { logger }: Pick<VerifyingParts, 'logger'>): Unavailability {
  if (isOfKind(error, Fault)) return unavailable(error.code, error.message);
  logger.error({ err: error }, 'an unexpected error was answered 503');
  return unavailable('misconfigured', `unexpected: ${textOf(error)}`);
}

/** Freezes a reply, because a hook sees the outcome before the answer is sent and must not change it. */
function frozen(reply: Reply): Reply {
  if (Object.isFrozen(reply)) return reply;
  return Object.freeze({ ...reply, headers: Object.freeze({ ...reply.headers }) });
}

/**
 * Returns the log level of an outcome: `error` for a fault after the sender is known. Anyone can cause an earlier
 * fault, whose error lines could flood the log. So an earlier fault only raises an alarm.
 */
function levelOf(outcome: Outcome): 'info' | 'error' {
  return outcome.kind === 'unavailable' && outcome.sender !== undefined ? 'error' : 'info';
}

/** Returns the members of a verdict for a log line, without the event. */
function loggable(verdict: Verdict): object {
  if (verdict.kind === 'stale' || verdict.kind === 'challenge') return { kind: verdict.kind };
  if (verdict.kind === 'unavailable') return { ...verdict, docs: docsOf(verdict.code) };
  if (!('event' in verdict)) return verdict;
  const { kind, state, changed } = verdict;
  return { kind, state, changed };
}

/** Makes the detail of a verdict safe for logs and terminals, because the detail may contain a sender's text. */
function printable<V extends Verdict>(verdict: V): V {
  return 'detail' in verdict ? { ...verdict, detail: printableText(verdict.detail, MAX_TEXT) } : verdict;
}

/** Starts to report a refusal to the owner. The report is not awaited, because the answer does not depend on it. */
function tellRefusal(outcome: Outcome & Refusal, known: OutcomeContext, context: VerifyingParts): void {
  loadRare()
    .then((it) => it.noteRefusal(outcome, known, context))
    .catch((error: unknown) => context.logger.error({ err: error }, 'a refusal could not be explained'));
}

/** Raises the alarms that depend on the outcome alone. */
function raiseAlarms(outcome: Outcome, { raiseAlarm, outages }: VerifyingParts): void {
  if (outcome.kind !== 'unavailable') return;
  if (outcome.code === 'store_unavailable') outages.store(outcome.detail);
  // Once the sender is known, nothing else raises an alarm for this fault. For an earlier fault, the code that finds
  // the fault raises the alarm.
  if (outcome.code === 'misconfigured' && outcome.sender !== undefined) {
    raiseAlarm({ code: 'misconfigured', message: outcome.detail });
  }
  if (outcome.code === 'not_durable') {
    raiseAlarm({ code: 'durability_lowered', message: outcome.detail });
  }
}

/**
 * Returns the member `url` of the outcome; an empty object if the URL is unknown, or longer than an event may store.
 */
function urlOf({ selected }: OutcomeContext): Pick<Outcome, 'url'> {
  const url = selected?.target.targetUri;
  return url === undefined || !isKeptUrl(url) ? {} : { url };
}

/** Makes the outcome from a verdict: makes the reply, writes the log, raises alarms and calls the owner's hooks. */
export function finishOutcome<V extends Verdict>(
  raw: V,
  known: OutcomeContext,
  context: VerifyingParts,
): OutcomeOf<V> {
  const { who, event } = known;
  const verdict = printable(raw);
  const response = frozen(respond(verdict, context.config.retryAfterMs));
  // The outcome is frozen below, because a hook receives it before the answer is sent.
  const outcome: OutcomeOf<V> = { ...who, ...urlOf(known), ...(event && { event }), ...verdict, response };
  Object.freeze(outcome);
  const ids = event && { key: event.idempotencyKey, ...idsOf(event) };
  const fields = { ...who, ...ids, ...loggable(verdict), status: response.status };
  context.logger[levelOf(outcome)](fields, `delivery ${outcome.kind}`);
  if (outcome.kind === 'refused') tellRefusal(outcome, known, context);
  raiseAlarms(outcome, context);
  noteOutcome(context.notes, outcome, known.selected?.senders, context.now);
  known.watch?.ended(outcome, known.delivery?.headers);
  context.onOutcome(outcome);
  return outcome;
}

/** Facts about a delivery whose sender is unknown. */
const NOBODY: OutcomeContext = { who: {} };

/** Makes `receiver.door`: the 503 answers for an adapter that cannot pass a request to the receiver. */
export function createDoor(context: VerifyingParts): Door {
  return {
    maxBodyBytes: context.config.maxBodyBytes,
    consumed(detail) {
      context.raiseAlarm({ code: 'misconfigured', message: detail });
      return finishOutcome(unavailable('body_consumed', detail), NOBODY, context);
    },
    fault: (error) => finishOutcome(faultVerdict(error, context), NOBODY, context),
  };
}
