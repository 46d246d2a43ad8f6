import { canonicalOrUndefined } from '../config/public-url.ts';
import { ConfigError } from '../shared/errors.ts';
import { OF_REGISTRATIONS, type ReceiverOfRegistrations } from '../events/event-registration.ts';
import type { StoreRegistrations } from '../stores/store.ts';

/** What registrations have in common with their receiver. */
interface Theirs {
  readonly registrations: StoreRegistrations;
  readonly senders: unknown;
  readonly publicUrl: string;
}

/** @throws ConfigError where a receiver with these registrations has the store, the senders or the URL of others. */
export function requireTheirs(own: Theirs, { store, senders, publicUrl }: ReceiverOfRegistrations): void {
  if (store.registrations !== own.registrations) {
    throw new ConfigError(
      'store: is another one than the store of registrations, so their operations and its events would be apart. Give the same to createReceiver and createRegistrations.',
    );
  }
  if (!(OF_REGISTRATIONS in Object(senders))) return;
  if (senders !== own.senders) {
    throw new ConfigError(
      'senders: are those of other registrations. Give senders: registrations.senders of the same.',
    );
  }
  const below = canonicalOrUndefined(own.publicUrl.slice(0, -1))?.targetUri;
  if (publicUrl.kind === 'prefix' && below?.startsWith(publicUrl.prefix)) return;
  throw new ConfigError(
    `publicUrl: does not cover ${own.publicUrl}, where sellers are told to send. Give publicUrl: registrations.publicUrl.`,
  );
}
