/** The oldest Node that the package runs on, as `engines` of package.json has it. */
const OLDEST = [22, 13] as const;

/**
 * The line for a Node that is too old. Imports nothing: what the command line needs may not load there.
 * @param version of Node, e.g. `20.20.2`; other runtimes have one for what they offer of it.
 */
export function tooOld(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return undefined;
  return `this is Node ${version}. Expected Node >= ${OLDEST.join('.')}.`;
}
