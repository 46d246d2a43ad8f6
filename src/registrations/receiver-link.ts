// Checks that registrations and their receiver fit together: one store, the senders, and URLs that the receiver serves.
// `createReceiver({ registrations })` calls it at construction.
import { canonicalOrUndefined } from '../config/public-url.ts';
import { ConfigError } from '../shared/errors.ts';
import { OF_REGISTRATIONS, type ReceiverOfRegistrations } from '../events/event-registration.ts';
import type { StoreRegistrations } from '../stores/store.ts';

/** The parts of registrations that are compared with their receiver. */
interface Theirs {
  readonly registrations: StoreRegistrations;
  readonly senders: unknown;
  readonly publicUrl: string | readonly string[];
}

/**
 * Checks that a receiver fits these registrations.
 * @throws ConfigError if it has another store, the senders of other registrations, or does not serve their URLs.
 */
export function requireTheirs(own: Theirs, { store, senders, bases }: ReceiverOfRegistrations): void {
  if (store.registrations !== own.registrations) {
    throw new ConfigError(
      'store: is not the store of registrations, so operations and events would be in two stores. Give the same one to createReceiver and createRegistrations.',
    );
  }
  const isTheirs = senders === undefined || senders === own.senders;
  if (!isTheirs && OF_REGISTRATIONS in Object(senders)) {
    throw new ConfigError(
      'senders: are those of other registrations. Leave the option out: registrations bring theirs.',
    );
  }
  const served = bases.flatMap((base) => (base.kind === 'prefix' ? base.prefix : []));
  const below = [own.publicUrl].flat().map((url) => canonicalOrUndefined(url.slice(0, -1))?.targetUri ?? '');
  const uncovered = below.filter((url) => !served.some((prefix) => url.startsWith(prefix)));
  const [first] = uncovered;
  if (first === undefined) return;
  // The receiver serves only the owner's own senders, at URLs apart from these. Another receiver handles what is
  // registered.
  const isApart =
    uncovered.length === below.length &&
    !served.some((prefix) => below.some((url) => prefix.startsWith(url)));
  if (!isTheirs && isApart) return;
  throw new ConfigError(
    `publicUrl: does not cover ${first}*, to which sellers are asked to send. Leave the option out: registrations bring theirs. For senders of your own beside them, give one that ends in /* and covers both.`,
  );
}
