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
import type { VerifyingParts } from './verifying.ts';
import type { OutcomeContext } from './refused.ts';
import { idsOf } from '../stages/ids.ts';
import { respond } from '../stages/respond.ts';

/** A thrown fault as a verdict; anything else thrown is a mistake of ours, and no sender pays for it. */
export function faultVerdict(error: unknown, { logger }: Pick<VerifyingParts, 'logger'>): Unavailability {
  if (isOfKind(error, Fault)) return unavailable(error.code, error.message);
  logger.error({ err: error }, 'an unexpected error was answered 503');
  return unavailable('misconfigured', `unexpected: ${textOf(error)}`);
}

/** A hook sees the outcome before it is answered, and must not be able to change the answer. */
function frozen(reply: Reply): Reply {
  if (Object.isFrozen(reply)) return reply;
  return Object.freeze({ ...reply, headers: Object.freeze({ ...reply.headers }) });
}

/** A fault that anyone can bring about, before it is known who sent, is an alarm's business; a line each would flood. */
function levelOf(outcome: Outcome): 'info' | 'error' {
  return outcome.kind === 'unavailable' && outcome.sender !== undefined ? 'error' : 'info';
}

/** What a log line tells of a verdict: everything but the event. */
function loggable(verdict: Verdict): object {
  if (verdict.kind === 'stale' || verdict.kind === 'challenge') return { kind: verdict.kind };
  if (verdict.kind === 'unavailable') return { ...verdict, docs: docsOf(verdict.code) };
  if (!('event' in verdict)) return verdict;
  const { kind, state, changed } = verdict;
  return { kind, state, changed };
}

/** What is said of a sender's words is for logs and terminals too, whatever was in them. */
function printable<V extends Verdict>(verdict: V): V {
  return 'detail' in verdict ? { ...verdict, detail: printableText(verdict.detail, MAX_TEXT) } : verdict;
}

/** Nobody waits for it: the answer has been decided. */
function tellRefusal(outcome: Outcome & Refusal, known: OutcomeContext, context: VerifyingParts): void {
  import('./rare.ts')
    .then((it) => it.noteRefusal(outcome, known, context))
    .catch((error: unknown) => context.logger.error({ err: error }, 'a refusal could not be explained'));
}

/** What is an alarm by its outcome alone. */
function raiseAlarms(outcome: Outcome, { raiseAlarm, outages }: VerifyingParts): void {
  if (outcome.kind !== 'unavailable') return;
  if (outcome.code === 'store_unavailable') outages.store(outcome.detail);
  // Found by the store, or nowhere foreseen; what is found before it is known who sent is an alarm where it is found.
  if (outcome.code === 'misconfigured' && outcome.sender !== undefined) {
    raiseAlarm({ code: 'misconfigured', message: outcome.detail });
  }
  if (outcome.code === 'not_durable') {
    raiseAlarm({ code: 'durability_lowered', message: outcome.detail });
  }
}

/** As long as an event's may be: it goes into logs. */
function urlOf({ selected }: OutcomeContext): Pick<Outcome, 'url'> {
  const url = selected?.target.targetUri;
  return url === undefined || !isKeptUrl(url) ? {} : { url };
}

/** The outcome of a verdict: answered, logged, counted by the owner's hooks. */
export function finishOutcome<V extends Verdict>(
  raw: V,
  known: OutcomeContext,
  context: VerifyingParts,
): OutcomeOf<V> {
  const { who, event } = known;
  const verdict = printable(raw);
  const response = frozen(respond(verdict, context.config.retryAfterMs));
  // Frozen: it is what the hook sees, and what the answer is read from after it.
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

/** Nothing is known of who sent. */
const NOBODY: OutcomeContext = { who: {} };

/** Answers that adapters need besides those of `open` and `verifyAndDispatch`. */
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
