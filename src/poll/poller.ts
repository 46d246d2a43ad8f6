// Polls due tasks: asks sellers for the status, passes changes to the receiver, and stores the results (calls.md §3).
// `poller.start` runs the loop.
import { refusedBy } from '../calls/refused-answer.ts';
import { notANumber } from '../config/validate.ts';
import type { Hashes } from '../crypto/engine.ts';
import { ConfigError, isOfKind, messageOf } from '../shared/errors.ts';
import type { TaskStatus } from '../events/event.ts';
import type { Observed } from '../events/observation.ts';
import { isTerminal } from '../events/status.ts';
import { createThinning } from '../shared/logging.ts';
import type { Receiver } from '../config/receiver-options.ts';
import type { ReceiverContext } from '../receiver/context.ts';
import { accountArgument } from '../registrations/operation-rows.ts';
import type { Watch, WatchedTasks } from '../registrations/watch-task.ts';
import { limited, orAborted } from '../shared/time-limits.ts';
import { hashOf, type TaskSeen } from './poll-answer.ts';
import { failureOf, type PollFailure } from './failure.ts';
import { type PolledTask, questioner, type QuestionContext } from './query.ts';
import {
  beginPoll,
  type Begun,
  contextOf,
  endPoll,
  type Held,
  moveTask,
  type PollKept,
  type Pace,
  type Polled,
  type PollEnd,
} from './schedule.ts';

/**
 * The result of one request to a seller about a task, as `onPoll` receives it.
 * - `changed`: the seller reported something new, and it was passed to `receiver.observe`.
 * - `ended`: the seller reported the end of the task, and it was passed to `receiver.observe`.
 * - `unchanged`: nothing is new.
 * - `busy`: the seller asks for a pause.
 * - `unknown`: the seller does not know the task.
 * - `refused`: a repeat is useless until something is changed, e.g. because the seller lacks the operation.
 * - `failed`: there was no usable answer, e.g. because the connection failed.
 * - `unresolved`: no end of the task is known, and the task is no longer polled.
 */
export type PollResult =
  'changed' | 'ended' | 'unchanged' | 'busy' | 'unknown' | 'refused' | 'failed' | 'unresolved';

/** One request to a seller about a task. It is passed to `onPoll` with its result when it has ended. */
export interface Poll {
  /** The agent URL of the seller. */
  readonly sender: string;
  readonly taskId: string;
  readonly operationId: string;
  readonly taskType: string;
  readonly result: PollResult;
  /** The task status that the seller answered. */
  readonly status?: TaskStatus;
  /** The time from the request until its result was stored, ms. */
  readonly durationMs: number;
  /** The reason why there is no usable answer. */
  readonly error?: string;
}

/** The numbers of polls of a poller in this process since it was created: `poller.stats()`. */
export interface PollerStats {
  /** The number of polls that run now. */
  readonly inFlight: number;
  readonly polls: Readonly<Record<PollResult, number>>;
  /** The number of tasks whose end another source, e.g. a webhook, had reported before their next poll. */
  readonly endedBefore: number;
}

export interface PollerContext extends QuestionContext {
  readonly parts: Pick<ReceiverContext, 'config' | 'logger' | 'raiseAlarm' | 'now'>;
  readonly observe: Receiver['observe'];
  readonly tasks: WatchedTasks;
  readonly pace: Omit<Pace, 'silentMs'>;
  /** Returns the option `silentMs` for a seller, by agent URL. A function of the application may throw. */
  readonly silentMs: (agentUrl: string) => number;
  /** The most concurrent polls of this process, including those that wait for their seller's answer. */
  readonly concurrency: number;
  /** The time after which a poll is aborted, before another process repeats it. Ms. */
  readonly callMs: number;
  readonly onPoll: (poll: Poll) => void;
  readonly hashes: Hashes;
  /** Milliseconds of a monotonic clock. */
  readonly clock: () => number;
  /** Resolves after `ms`, or early if the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

export interface PollerLoop {
  /** Polls tasks until the signal aborts. Then begins no more polls, and resolves when the running ones have ended. */
  readonly run: (stopping: AbortSignal) => Promise<void>;
  readonly stats: () => PollerStats;
}

/** The longest wait between two searches for due tasks, unless `fastMs` or `slowMs` is shorter. Ms. */
const LOOK_MS = 10_000;
const LEAST_MS = 100;

type BegunPoll = Extract<Begun, { readonly kind: 'poll' }>;

/** The number of failed polls in a row that raises an alarm: a quarter of an hour at the default interval. */
const FAILING = 5;

export function pollerLoop(context: PollerContext): PollerLoop {
  const { tasks, parts, clock, sleep, concurrency } = context;
  const { logger } = parts;
  const { leaseMs, fastMs, slowMs } = context.pace;
  const mostMs = Math.min(LOOK_MS, fastMs, slowMs);
  const running = new Set<Promise<void>>();
  const counts: Record<PollResult, number> = {
    changed: 0,
    ended: 0,
    unchanged: 0,
    busy: 0,
    unknown: 0,
    refused: 0,
    failed: 0,
    unresolved: 0,
  };
  let endedBefore = 0;
  const ask = asker(context);
  const alarms = alarmsOf(context);
  const thinning = createThinning();
  const paceOf = pacing(context);

  /**
   * Polls a task. @returns the poll of the seller's next waiting task, which begins now; undefined if there is none.
   */
  const made = async (
    { watch, held }: BegunPoll,
    pace: Pace,
    stopping: AbortSignal,
  ): Promise<Begun | undefined> => {
    const since = clock();
    const asked = await ask(watch, held, stopping);
    if (asked.end.kind === 'answered') await context.learn?.(held.sender, watch.ref, stopping);
    // At its maximum of polls, this process leaves the seller's next task to others, so that all sellers get a turn.
    const goesOn = !stopping.aborted && running.size < concurrency;
    const { kept, next } = await endPoll(tasks, held, asked.end, { ...pace, goesOn });
    const told = resultOf(asked, kept);
    alarms(watch, held, told);
    if (told.result === 'stopped') return next;
    counts[told.result] += 1;
    context.onPoll({ ...namesOf(watch, held), ...factsOf(told), durationMs: Math.max(0, clock() - since) });
    return next;
  };
  const poll = async (row: Held, stopping: AbortSignal): Promise<void> => {
    if (stopping.aborted) return;
    const pace = paceOf(row.sender);
    let begun: Begun | undefined = await beginPoll(tasks, row, pace);
    if (begun.kind === 'ended') endedBefore += 1;
    while (begun?.kind === 'poll') begun = await made(begun, pace, stopping);
  };
  const begin = (row: Held, stopping: AbortSignal): void => {
    const run = poll(row, stopping)
      .catch((error: unknown) => {
        const suppressed = thinning('store', parts.now());
        if (suppressed === undefined) return;
        logger.warn(
          { err: error, sender: row.sender },
          'The store failed during a poll: the task is polled again after its lease.',
        );
      })
      .finally(() => running.delete(run));
    running.add(run);
  };
  const look = async (stopping: AbortSignal): Promise<number> => {
    const max = concurrency - running.size;
    try {
      const found = await tasks.rows.due({ kind: 'watch', max, holdMs: leaseMs, senders: [] });
      for (const { sender, id, dueAt } of found.rows) begin({ sender, id, dueAt }, stopping);
      if (found.rows.length === max) return 0;
      return Math.max(LEAST_MS, Math.min(found.nextDueMs ?? mostMs, mostMs));
    } catch (error) {
      logger.warn({ err: error }, `The store could not list the tasks to poll. ${messageOf(error)}`);
      return LOOK_MS;
    }
  };
  return {
    run: async (stopping) => {
      while (!stopping.aborted) {
        if (running.size >= concurrency) {
          await Promise.race(running);
          continue;
        }
        const idleMs = await look(stopping);
        if (idleMs > 0) await sleep(idleMs, stopping);
      }
      await Promise.all(running);
    },
    stats: () => ({ inFlight: running.size, polls: { ...counts }, endedBefore }),
  };
}

/** Returns a function for a seller's pace. If the option `silentMs` fails, `fastMs` applies and an alarm is raised. */
function pacing({ pace, silentMs, parts }: PollerContext): (sender: string) => Pace {
  const fail = (sender: string, reason: string): number => {
    const message = `silentMs: ${reason}. Return a number of ms; until then the seller is polled fast.`;
    parts.raiseAlarm({ code: 'misconfigured', sender, message });
    return 0;
  };
  const safe = (sender: string): number => {
    try {
      const ms: unknown = silentMs(sender);
      return typeof ms === 'number' && ms >= 0 ? ms : fail(sender, `${notANumber(ms)} not a number of ms`);
    } catch (error) {
      return fail(sender, messageOf(error));
    }
  };
  return (sender) => ({ ...pace, silentMs: safe(sender) });
}

/** The result of a poll, for `onPoll` and the alarms. `end` is the outcome that is stored. */
interface Told {
  readonly result: PollResult | 'stopped';
  readonly end: PollEnd;
  readonly status?: TaskStatus;
  readonly error?: string;
  /** The code of the failure or refusal: the seller's, or this package's. */
  readonly code?: string;
}

/** Returns the result of a poll. Storing it may have shown that the task is given up, or that it ended meanwhile. */
function resultOf(asked: Told, kept: PollKept): Told {
  if (kept === 'unresolved') {
    return { error: 'it was polled for giveUpMs, and has not ended', ...asked, result: 'unresolved' };
  }
  // The task is not given up if another source, e.g. a webhook, has reported its end, or if this poll's lease had
  // ended.
  return asked.result === 'unresolved' ? { ...asked, result: 'unchanged' } : asked;
}

const namesOf = (
  { taskId, operationId, taskType }: Watch,
  { sender }: Held,
): Pick<Poll, 'sender' | 'taskId' | 'operationId' | 'taskType'> => ({
  sender,
  taskId,
  operationId,
  taskType,
});

const factsOf = ({ result, status, error }: Told): Pick<Poll, 'result' | 'status' | 'error'> => ({
  result: result as PollResult,
  ...(status !== undefined && { status }),
  ...(error !== undefined && { error }),
});

/** True if a seller's answer differs from the last poll, or from a status that e.g. a webhook has reported since. */
function differs({ status, updatedAt }: TaskSeen, dataHash: string | undefined, watch: Polled): boolean {
  const { told, answeredAt = watch.since } = watch;
  if (status !== watch.status) return true;
  if (told !== undefined && told.at > answeredAt && told.status !== status) return true;
  // If the seller gives a time with the status, the same status with other data counts as a change.
  return updatedAt !== undefined && dataHash !== watch.dataHash;
}

/** Returns a function that asks a seller about a task and passes changes on. It rejects if the store fails. */
function asker(context: PollerContext): (watch: Polled, held: Held, stopping: AbortSignal) => Promise<Told> {
  const { parts, observe, tasks, hashes, callMs } = context;
  const question = questioner(context);
  const {
    edition: { name: edition },
    maxBodyBytes,
  } = parts.config;

  const observed = async (watch: Polled, held: Held, seen: TaskSeen, askedAt: number): Promise<Observed> => {
    const { status, updatedAt, data } = seen;
    const context = await contextOf(tasks, watch, held);
    return observe({
      ...namesOf(watch, held),
      status,
      ...(data !== undefined && { data }),
      ...(context && { context }),
      // A final status has no time, so that the receiver always accepts it. Other statuses are ordered by time.
      ...(updatedAt !== undefined && !isTerminal(status) && { timestamp: updatedAt }),
      askedAt,
      source: 'poll',
      // The id of the observation. A repeat of an interrupted poll has the same id, so that the receiver ignores it.
      // The id differs if a status of the task, e.g. from a webhook, has been applied since.
      observation: updatedAt ?? `change ${watch.changes + 1} after ${watch.told?.at}`,
    });
  };
  /** The operation goes on as another task, `taskId`: stores that id, and passes the status to the receiver. */
  const moved = async (
    watch: Polled,
    held: Held,
    seen: TaskSeen,
    { taskId, askedAt }: { readonly taskId: string; readonly askedAt: number },
  ): Promise<Told> => {
    const { status, hintMs } = seen;
    const isMoved = await moveTask(tasks, held, { status, taskId }, context.pace);
    if (isMoved) await observed({ ...watch, taskId }, held, seen, askedAt);
    const { status: known, dataHash } = watch;
    const end = { kind: 'answered', isEnd: false, status: known, dataHash, isChange: false, hintMs } as const;
    return { result: isMoved ? 'changed' : 'unchanged', status, end };
  };
  const answered = async (watch: Polled, held: Held, seen: TaskSeen, askedAt: number): Promise<Told> => {
    const { status, data, hintMs, movedTo } = seen;
    if (movedTo !== undefined) return moved(watch, held, seen, { taskId: movedTo, askedAt });
    const isEnd = isTerminal(status);
    const dataHash = data === undefined ? undefined : await hashOf(data, hashes, maxBodyBytes);
    const isChange = isEnd || differs(seen, dataHash, watch);
    const outcome = isChange ? await observed(watch, held, seen, askedAt) : undefined;
    if (outcome?.kind === 'refused') return failed({ kind: 'failed', message: outcome.detail });
    const result = isEnd ? 'ended' : outcome?.kind === 'accepted' ? 'changed' : 'unchanged';
    // If the receiver already had a newer status (`stale`), the next answer is compared with the former status again.
    const known = outcome?.kind === 'stale' ? watch.status : status;
    return { result, status, end: { kind: 'answered', isEnd, status: known, dataHash, isChange, hintMs } };
  };

  const reason = `the seller did not answer within ${callMs} ms`;
  return async (watch, held, stopping) => {
    const askedAt = parts.now();
    let seen: TaskSeen;
    try {
      seen = await limited({ ms: callMs, reason }, stopping, (signal) =>
        orAborted(question(taskOf(watch, held, edition), signal), signal),
      );
    } catch (error) {
      return stopping.aborted ? { result: 'stopped', end: { kind: 'stopped' } } : failed(failureOf(error));
    }
    if (seen.status === 'completed' && seen.data === undefined) {
      return {
        result: 'unresolved',
        end: { kind: 'unresolved' },
        status: 'completed',
        error: 'the seller answers completed without a result',
      };
    }
    try {
      return await answered(watch, held, seen, askedAt);
    } catch (error) {
      const refused = refusedBy(error, true);
      if (refused) return failed(failureOf(refused));
      if (!isOfKind(error, ConfigError)) throw error;
      return failed({ kind: 'refused', code: 'answer_invalid', message: error.message });
    }
  };
}

const RESULTS = {
  busy: 'busy',
  unknown: 'unknown',
  'no-operation': 'refused',
  refused: 'refused',
  failed: 'failed',
} as const satisfies Record<PollFailure['kind'], PollResult>;

function failed(failure: PollFailure): Told {
  const { kind, message, pauseMs } = failure;
  const code = failure.kind === 'refused' ? failure.code : failure.kind;
  const end: PollEnd = {
    kind: 'failed',
    ...((kind === 'busy' || pauseMs !== undefined) && { isBusy: true, pauseMs }),
    ...(kind === 'unknown' && { isUnknown: true }),
  };
  return { result: RESULTS[kind], end, error: message, code };
}

function taskOf(watch: Watch, held: Held, edition: PolledTask['edition']): PolledTask {
  const { account, ref, status } = watch;
  return {
    ...namesOf(watch, held),
    ...(ref !== undefined && { ref }),
    ...accountArgument(account),
    edition: watch.edition ?? edition,
    ...(status !== undefined && { status }),
  };
}

const isFailure = (result: Told['result']): boolean => result === 'failed' || result === 'busy';

/** Returns a function that raises an alarm after a poll if the task is unresolved or unknown, or if polls fail. */
function alarmsOf({ parts: { raiseAlarm } }: PollerContext): (watch: Watch, held: Held, told: Told) => void {
  return (watch, held, { result, error = '', code = result }) => {
    const of = namesOf(watch, held);
    if (result === 'unresolved') {
      raiseAlarm({
        code: 'task_unresolved',
        ...of,
        message: `It is unknown how ${of.taskType} ended: ${error}. It is no longer polled; a later webhook still ends it. Ask the seller.`,
      });
    } else if (result === 'unknown' && !watch.isUnknown) {
      raiseAlarm({
        code: 'task_unknown',
        ...of,
        message: `${error} This does not say how the task ended: it is polled again, ever less often.`,
      });
    } else if (result === 'refused' || (isFailure(result) && watch.failures + 1 >= FAILING)) {
      raiseAlarm({
        code: code === 'answer_refused' ? 'answer_refused' : 'poll_failing',
        ...of,
        refusal: code,
        message: `Tasks of the seller cannot be polled, and are tried again ever less often: ${error}`,
      });
    }
  };
}
