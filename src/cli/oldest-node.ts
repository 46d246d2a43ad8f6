// Refuses a Node that is too old. This file imports nothing, because other modules may not load on an old Node.

/** The oldest Node on which the package runs, as in `engines` of package.json. */
const OLDEST = [22, 13] as const;

/**
 * Returns the error message for a Node that is too old; undefined for any other.
 * @param version of Node, e.g. `20.20.2`; other runtimes give the version of Node that they are compatible with.
 */
export function tooOld(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return undefined;
  return `this is Node ${version}. Expected Node >= ${OLDEST.join('.')}.`;
}
