const FEED = /^(?:product|signal|wholesale_feed)\./;

/** The name under which a family has its payload and its handler: all of the wholesale feed have one. */
export function notificationFamily(family: string): string {
  return FEED.test(family) ? 'wholesale_feed' : family;
}
