/**
 * Waits for the end of `work`, at most `ms`.
 * @returns whether it came in time. @throws (rejects) what `work` rejects with in time
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

/** An error of whichever realm, or a `DOMException`. */
export const isError = (value: unknown): value is Error =>
  typeof value === 'object' && value !== null && 'message' in value && 'stack' in value;

/** What was thrown, as a text. */
export const messageOf = (error: unknown): string => (isError(error) ? error.message : String(error));

/** The same with what to run instead of what the library's users write. */
export const adviceOf = (error: unknown, file: string): string =>
  messageOf(error).replaceAll('migrate(pool)', `npx proto-webhooks serve --config ${file} --migrate`);
