// Checks that registrations and their receiver fit together: they share a store, and the receiver serves the URLs and
// the senders of the registrations. `createReceiver({ registrations })` calls it at construction.
import { canonicalOrUndefined } from '../config/public-url.ts';
import { ConfigError } from '../shared/errors.ts';
import { OF_REGISTRATIONS, type ReceiverOfRegistrations } from '../events/event-registration.ts';
import type { StoreRegistrations } from '../stores/store.ts';

/** The parts of registrations that must fit their receiver. */
interface Theirs {
  readonly registrations: StoreRegistrations;
  readonly senders: unknown;
  readonly publicUrl: string | readonly string[];
}

/**
 * Checks that a receiver fits these registrations.
 * @throws ConfigError if the receiver has another store, has the senders of other registrations, or does not serve the
 *   URLs of these registrations.
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
  // True if this receiver serves only senders that are not of these registrations, at other URLs. Another receiver then
  // handles the deliveries to registered URLs.
  const isApart =
    uncovered.length === below.length &&
    !served.some((prefix) => below.some((url) => prefix.startsWith(url)));
  if (!isTheirs && isApart) return;
  throw new ConfigError(
    `publicUrl: does not cover ${first}*, to which sellers are asked to send. Leave the option out: registrations bring theirs. For senders of your own beside them, give one that ends in /* and covers both.`,
  );
}
