// Exports names of `src/codec` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export { canonicalJson } from './canonical-json.ts';
export { decodeBase64, encodeBase64, encodeBase64Url, hex, utf8 } from './encoding.ts';
export { inexactNumbers } from './inexact-numbers.ts';
export { readJson } from './json-reader.ts';
export { isLongerJson } from './json-size.ts';
export { isJsonObject, withoutNulls } from './members.ts';
export { printableValue } from './printable-value.ts';
export { isPrintable, MAX_TEXT, printableName, sanitizedName } from './printable.ts';
export { retryAfterMs } from './retry-after.ts';
export {
  countMembers,
  duplicateNames,
  MAX_DEPTH,
  type MemberCount,
  parseStrictObject,
} from './strict-json.ts';
