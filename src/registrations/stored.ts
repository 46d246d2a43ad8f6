import { parseStrictObject } from '../codec/strict-json.ts';
import { utf8 } from '../codec/utf8.ts';
import { Fault } from '../errors.ts';

/**
 * JSON that this package has kept in a row.
 * @throws Fault `misconfigured`: it is none any more.
 */
export function storedObject(text: string): Readonly<Record<string, unknown>> {
  const parsed = parseStrictObject(utf8(text));
  if (parsed.ok) return parsed.value;
  throw new Fault(
    'misconfigured',
    `A row of a registration cannot be read: ${parsed.detail}. Restore the store from a backup.`,
  );
}
