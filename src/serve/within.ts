// Small helpers: waiting for work within a time limit, and the text of any error. All parts of serve use it.

/**
 * Waits for the end of `work`, at most `ms`.
 * @returns true if it came in time.
 * @throws (rejects) the error of `work`, if it came in time
 */
export async function endsWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => late.resolve(false), ms);
  try {
    return await Promise.race([work.then(() => true), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** True for an error of any realm, or a `DOMException`. */
export const isError = (value: unknown): value is Error =>
  typeof value === 'object' && value !== null && 'message' in value && 'stack' in value;

/** The text of a thrown value. */
export const messageOf = (error: unknown): string => (isError(error) ? error.message : String(error));

/** The text of a thrown value, with the command to run in place of the call that users of the library write. */
export const adviceOf = (error: unknown, file: string): string =>
  messageOf(error).replaceAll('migrate(pool)', `npx proto-webhooks serve --config ${file} --migrate`);
