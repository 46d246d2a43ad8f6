import { canonicalJson } from '../codec/canonical-json.ts';
import { isJsonObject } from '../codec/members.ts';
import type { Hashes } from '../crypto/engine.ts';
import type { TaskEvent } from '../events/event.ts';

/** What differs between two deliveries that say the same, wherever it stands. */
const LEFT_OUT: ReadonlySet<string> = new Set(['idempotency_key', 'timestamp', 'metadata']);

function told(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(told);
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value).filter(([name]) => !LEFT_OUT.has(name));
  return Object.fromEntries(members.map(([name, member]) => [name, told(member)]));
}

/**
 * SHA-256 of what a terminal status says, lower-case hex (verification.md §2.19): status and data; where there is no data
 * the payload less its keys, timestamps and metadata.
 */
export function terminalHash({ status, data, envelope }: TaskEvent, hashes: Hashes): string {
  const content = data == null ? { payload: told(envelope) } : { data };
  return hashes.sha256Hex(canonicalJson({ status, ...content }));
}
