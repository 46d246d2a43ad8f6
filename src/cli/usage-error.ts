/** The command cannot be done as it was given: exit code 2, and `message` is the one line on stderr. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
