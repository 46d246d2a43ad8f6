// Maps a family's name to the one under which its payload type and handler are found (verification.md §7.38).
// Called while events are read and dispatched.

const FEED = /^(?:product|signal|wholesale_feed)\./;

/** The name of a family's payload type and handler: all families of the wholesale feed share one. */
export function notificationFamily(family: string): string {
  return FEED.test(family) ? 'wholesale_feed' : family;
}
