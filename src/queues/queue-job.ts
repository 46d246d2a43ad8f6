// The common part of the BullMQ and pg-boss handlers: the job's data and options, and their checks (docs/queues.md).
// Called by `bullmq.ts` and `pg-boss.ts`.

import { readJson } from '../codec/json-reader.ts';
import { ConfigError } from '../shared/errors.ts';
import type { Event } from '../events/event.ts';
import type { HandlerContext } from '../config/receiver-options.ts';

/** Matches an escape that `JSON.stringify` writes for NUL, or for half of a surrogate pair. */
const UNSTORABLE = /(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})/g;

/**
 * Replaces NUL and lone surrogates by U+FFFD, and changes nothing else. JSON allows these characters, but PostgreSQL's
 * `jsonb` refuses them, so an event with one could never be stored.
 *
 * If this makes two names in one object equal, only the last member remains, because `jsonb` could not tell them apart.
 */
export function storableJson(value: object): object {
  const text = JSON.stringify(value);
  const storable = text.replace(UNSTORABLE, '$1\uFFFD');
  return storable === text ? value : (readJson(storable) as object);
}

/** The data of a queue job if you do not set `data`: the event that the handler received, as JSON, without `parsed`. */
export type WebhookJob = Event;

/** The options of the jobs that `enqueue` adds to a queue: the same for all events, or a function of the event. */
export type JobOptions<E, Options> = Options | ((event: E) => Options);

/**
 * The options of `enqueue` that are the same for BullMQ and pg-boss: the data and the options of the jobs. `Own`
 * names the job options that `enqueue` sets itself.
 */
export interface JobSettings<Data, Options, Own extends PropertyKey, E extends Event> {
  /** Returns the job's data, which must be JSON. Default: the event without `parsed`. */
  readonly data?: (event: E, ctx: HandlerContext) => Data;
  /** Job options of the queue, e.g. priority, attempts or retryLimit. */
  readonly jobOptions?: JobOptions<E, Omit<Options & object, Own>>;
}

/**
 * The shortest time for which a queue must remember a job's id, because senders retry for up to 24 h (contract.md
 * §9.3).
 */
export const DAY_MS = 86_400_000;

/**
 * Returns the event without `parsed`: the output of a schema may not be JSON, and the event has the data anyway. The
 * rest syntax copies own members unchanged, so a `__proto__` that a sender sent stays a member.
 */
export function webhookJob(event: Event): WebhookJob {
  if (event.kind !== 'task') return event;
  const { parsed: _, ...rest } = event;
  return rest;
}

/**
 * Checks the options of a job.
 *
 * @throws ConfigError for an option that would give the job another id, or lose or repeat the job.
 */
export function requireOptions(
  who: string,
  options: object,
  refused: Readonly<Record<string, string>>,
): void {
  for (const [name, why] of Object.entries(refused)) {
    if ((options as Readonly<Record<string, unknown>>)[name] !== undefined) {
      throw new ConfigError(`${who}: jobOptions.${name} ${why} Leave it out.`);
    }
  }
}

export function optionsFor<E, Options extends object>(
  options: JobOptions<E, Options> | undefined,
  event: E,
): Partial<Options> {
  if (options === undefined) return {};
  // A user's function in JavaScript may return undefined.
  return typeof options === 'function' ? (options(event) ?? {}) : options;
}
