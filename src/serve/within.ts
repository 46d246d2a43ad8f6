// Small helpers: waiting for work within a time limit, and the text of an error. All parts of serve use them.

/**
 * Waits until `work` ends, at most `ms`.
 * @returns true if `work` ended in time.
 * @throws (rejects) the error of `work`, if it failed in time
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

/** True for an `Error` of any realm, or a `DOMException`. */
export const isError = (value: unknown): value is Error =>
  typeof value === 'object' && value !== null && 'message' in value && 'stack' in value;

/** Returns the text of a thrown value. */
export const messageOf = (error: unknown): string => (isError(error) ? error.message : String(error));

/**
 * Returns the text of a thrown value. Advice to call `migrate(pool)` is replaced by the command of `serve` that does
 * the same.
 */
export const adviceOf = (error: unknown, file: string): string =>
  messageOf(error).replaceAll('migrate(pool)', `npx proto-webhooks serve --config ${file} --migrate`);
