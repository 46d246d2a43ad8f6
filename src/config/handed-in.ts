// Checks the parts that an owner passes to a receiver or a verifier: store, handlers, schemas, registrations, clock,
// logger (admission.md §2.11). Called for the options of both. Numbers are checked in defaults.ts.
import { isJsonObject } from '../codec/members.ts';
import { ConfigError } from '../shared/errors.ts';
import type { StandardSchema } from '../events/event.ts';
import { OF_REGISTRATIONS } from '../events/event-registration.ts';
import type { AdmissionPressure } from '../keys/admission-pressure.ts';
import type { Handlers, ReceiverOptions } from './receiver-options.ts';
import type { Store } from '../stores/store.ts';
import { type AnyOptions, checkEach } from './defaults.ts';
import { describeMissing, notANumber, onlyKnown, requireLogger } from './validate.ts';

const HANDLER_NAMES: Readonly<Record<keyof Handlers, true>> = {
  submitted: true,
  working: true,
  'input-required': true,
  'auth-required': true,
  completed: true,
  failed: true,
  canceled: true,
  rejected: true,
  deliveryReport: true,
  notifications: true,
  other: true,
};

function checkSchemas(schemas: unknown): void {
  if (schemas === undefined) return;
  if (typeof schemas !== 'object' || schemas === null) {
    throw new ConfigError('resultSchemas: must be an object like { create_media_buy: schema }.');
  }
  for (const [taskType, schema] of Object.entries(schemas)) {
    const standard: unknown = (schema as Partial<StandardSchema> | null | undefined)?.['~standard'];
    if (typeof (standard as Partial<StandardSchema['~standard']> | undefined)?.validate !== 'function') {
      throw new ConfigError(
        `resultSchemas.${taskType}: is not a Standard Schema. Use zod, valibot, arktype or another library that implements it; a JSON Schema has to be compiled by one.`,
      );
    }
  }
}

/**
 * A time below this value is taken for seconds instead of ms. With such a clock every signature would be outside its
 * time window, and answered 401, which is final for the seller.
 */
const LOOKS_LIKE_SECONDS = 1e11;

function checkClock(now: unknown): void {
  if (typeof now !== 'function') return;
  const value: unknown = now();
  if (typeof value !== 'number' || !(value >= LOOKS_LIKE_SECONDS)) {
    throw new ConfigError(`now: returned ${String(value)}. It must return Unix milliseconds, like Date.now.`);
  }
}

function requireFunctions(where: string, handlers: object): void {
  for (const [name, handler] of Object.entries(handlers)) {
    if (typeof handler !== 'function') throw new ConfigError(`${where}.${name}: must be a function.`);
  }
}

/**
 * Checks that each handler is a function, and that `other` exists, which gets every event without a handler of its own.
 */
function checkHandlers(options: ReceiverOptions): void {
  if (typeof options.handlers !== 'object' || options.handlers === null) {
    throw new ConfigError(
      `handlers: ${describeMissing(options.handlers, 'an object')}. Give at least handlers: { other: async (event) => { … } }.`,
    );
  }
  onlyKnown('handlers', options.handlers, HANDLER_NAMES);
  const { notifications = {}, ...handlers } = options.handlers;
  requireFunctions('handlers', handlers);
  if (!isJsonObject(notifications)) {
    throw new ConfigError(
      'handlers.notifications: must be an object like { impairment: async (event) => { … } }.',
    );
  }
  requireFunctions('handlers.notifications', notifications);
  if (typeof options.handlers.other !== 'function') {
    throw new ConfigError(
      'handlers.other: missing. It gets every event without a handler of its own, so that none is dropped.',
    );
  }
}

type Shape = (value: object) => boolean;

/** Returns a test that is true for a value with the methods `names`. The value may be a function, like some clients. */
const can =
  (...names: readonly string[]): Shape =>
  (value) =>
    names.every((name) => typeof (value as Readonly<Record<string, unknown>>)[name] === 'function');

/**
 * Tests for values that are often passed instead of a store, each with the advice. The first test that fits decides.
 */
const INSTEAD_OF_STORE: readonly (readonly [Shape, string])[] = [
  [(value) => typeof value === 'function', 'is a function. Call it: store: sqliteStore(path).'],
  [can('then'), 'is a promise. Await it first.'],
  [can('prepare', 'exec'), 'is a database. Write sqliteStore(database).'],
  [can('getConnection'), 'is a pool. Write mysqlStore({ pool }).'],
  [can('connect', 'query'), 'is a client or a pool. Write postgresStore({ pool }).'],
  [can('connect', 'duplicate'), 'is a client. Write redisStore({ client }), with a client of ioredis.'],
];

const STORE_EXAMPLE = "Give one, e.g. store: sqliteStore('webhooks.db') from 'proto-webhooks/sqlite'.";

/** The stores of the package that have an inbox and an identity, and survive a restart; for error messages. */
const DURABLE_STORES = 'SQLite, Postgres, MySQL, Redis';

/**
 * Requires a store. @throws ConfigError if the value is none; for values that are often passed instead, the message
 * says what to write.
 */
function requireStore(store: unknown): asserts store is Store {
  if (store === undefined || store === null) throw new ConfigError(`store: missing. ${STORE_EXAMPLE}`);
  if (typeof store === 'object' && can('accept')(store)) return;
  const [, found] = INSTEAD_OF_STORE.find(([shape]) => shape(Object(store) as object)) ?? [];
  throw new ConfigError(`store: ${found ?? `is not a store. ${STORE_EXAMPLE}`}`);
}

/**
 * Checks names, shapes and choices of a receiver's options; numbers are checked where they are read. @throws
 * ConfigError with the fix.
 */
export function checkParts(options: ReceiverOptions): void {
  checkEach(options);
  checkHandlers(options);
  requireStore(options.store);
  if (options.store.name === 'memory' && globalThis.process?.env?.['NODE_ENV'] === 'production') {
    throw new ConfigError(
      "store: memoryStore() forgets every event at a restart and is refused under NODE_ENV=production. Use sqliteStore('webhooks.db') or another durable store.",
    );
  }
  if (options.mode === 'inbox' && !options.store.inbox) {
    throw new ConfigError(
      `store: the ${options.store.name} store has no inbox, which mode 'inbox' needs. Use one that has (${DURABLE_STORES}), or mode: 'inline'.`,
    );
  }
  checkExpectedStore(options);
  checkSchemas(options.resultSchemas);
  checkRegistrations(options);
  checkShared(options);
}

function checkExpectedStore({ store, expectStoreId }: ReceiverOptions): void {
  if (expectStoreId === undefined) return;
  if (typeof expectStoreId !== 'string' || expectStoreId === '') {
    throw new ConfigError(
      `expectStoreId: ${describeMissing(expectStoreId, 'a string')}. Give the storeId that ready() returns.`,
    );
  }
  if (!store.identity) {
    throw new ConfigError(
      `expectStoreId: the ${store.name} store has no identity. Leave the option out, or use a store that has one (${DURABLE_STORES}).`,
    );
  }
}

/**
 * Checks the options that a verifier has too. Functions that are called later are checked now, because the errors of a
 * logger are ignored and a mistake would go unnoticed.
 */
export function checkShared({ advanced, fetch, now, logger }: AnyOptions): void {
  if (advanced?.dns !== undefined && fetch !== undefined) {
    throw new ConfigError(
      'advanced.dns: has no effect beside fetch, which connects by itself. Leave one of them out.',
    );
  }
  checkClock(now);
  requireLogger(logger);
}

function checkRegistrations(options: ReceiverOptions): void {
  if (options.registrations !== undefined && typeof options.registrations?.ofEvent !== 'function') {
    throw new ConfigError('registrations: is not the result of createRegistrations. Pass it.');
  }
  if (OF_REGISTRATIONS in Object(options.senders) && options.registrations === undefined) {
    throw new ConfigError(
      'registrations: missing, but senders is theirs: answers would reach no handler. Give both.',
    );
  }
}

const PRESSURE_NAMES: Readonly<Record<keyof AdmissionPressure, true>> = {
  shortRatio: true,
  mediumRatio: true,
  longRatio: true,
  ceiling: true,
};
const PRESSURE_RATIOS = ['shortRatio', 'mediumRatio', 'longRatio'] as const;
const CEILING_NAMES = { absolute: true, proportional: true } as const;

function checkThreshold(name: string, value: unknown, least: number): void {
  if (typeof value === 'number' && Number.isFinite(value) && value >= least) return;
  throw new ConfigError(
    `advanced.admissionPressure.${name}: ${notANumber(value)} not a number of at least ${least}.`,
  );
}

/**
 * Returns a copy of the thresholds for the alarm `admission_pressure`. @throws ConfigError if one is unknown or is not
 * a number in its range.
 */
export function pressureThresholds(thresholds: AdmissionPressure | undefined): AdmissionPressure {
  if (thresholds === undefined) return {};
  if (typeof thresholds !== 'object' || thresholds === null) {
    throw new ConfigError('advanced.admissionPressure: must be an object like { shortRatio: 5 }.');
  }
  onlyKnown('advanced.admissionPressure', thresholds, PRESSURE_NAMES);
  for (const name of PRESSURE_RATIOS) {
    // A ratio below one is refused, because every new key would raise an alarm.
    if (thresholds[name] !== undefined) checkThreshold(name, thresholds[name], 1);
  }
  const { ceiling } = thresholds;
  if (ceiling === undefined) return { ...thresholds };
  if (typeof ceiling !== 'object' || ceiling === null) {
    throw new ConfigError(
      'advanced.admissionPressure.ceiling: must be an object like { absolute: 20, proportional: 0.1 }.',
    );
  }
  onlyKnown('advanced.admissionPressure.ceiling', ceiling, CEILING_NAMES);
  checkThreshold('ceiling.absolute', ceiling.absolute, 0);
  checkThreshold('ceiling.proportional', ceiling.proportional, 0);
  return { ...thresholds, ceiling: { ...ceiling } };
}
