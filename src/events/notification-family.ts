// Maps a family's name to the name under which its payload type and handler are found (verification.md §7.38).
// Called while events are read and dispatched.

const FEED = /^(?:product|signal|wholesale_feed)\./;

/**
 * Returns the name under which a family's payload type and handler are found. All families of the wholesale feed share
 * the name `wholesale_feed`.
 */
export function notificationFamily(family: string): string {
  return FEED.test(family) ? 'wholesale_feed' : family;
}
