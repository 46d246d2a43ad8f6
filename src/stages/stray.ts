import { readSignatureFields } from '../auth/rfc9421/checks.ts';
import type { Delivery } from '../delivery.ts';
import { Fault } from '../errors.ts';
import type { Protocol } from '../protocol.ts';
import type { SenderEntry } from '../senders.ts';
import type { SelectContext } from './select.ts';

/** Whether it has the field of a legacy scheme that a sender is registered with. */
function hasLegacyField({ headers }: Delivery, senders: readonly SenderEntry[], protocol: Protocol): boolean {
  const field = { hmac: protocol.hmacSignatureHeader, bearer: 'authorization', signature: undefined };
  return senders.some(({ auth }) => {
    const name = field[auth.scheme];
    return name !== undefined && headers.has(name);
  });
}

/** Whether it names a key of a registered sender; looked for as for any delivery. */
async function hasKnownKey(
  { headers }: Delivery,
  senders: readonly SenderEntry[] | undefined,
  { keys, now }: SelectContext,
): Promise<boolean> {
  const fields = readSignatureFields(headers);
  const keyid = fields.kind === 'parsed' ? fields.input.parameters.keyid : undefined;
  if (keyid === undefined) return false;
  if (!senders) return keys.whose(keyid) !== undefined;
  const signing = senders.filter(({ auth }) => auth.scheme === 'signature');
  const { candidates } = await keys.find(keyid, { senders: signing, arrivedAt: now() });
  return candidates.length > 0;
}

/**
 * A request whose path is not under `publicUrl` (verification.md §4.15). A router or proxy of ours cut or added one, and the seller must not lose
 * the event by it: 503. It is an alarm only where a registered sender may have sent it, so that strangers raise none.
 * @throws Fault (rejects) `misconfigured`, always.
 */
export async function refuseStray(
  delivery: Delivery,
  prefix: string,
  context: SelectContext,
): Promise<never> {
  const message = `the request target is not under publicUrl ${prefix}*: pass the whole path that sellers call (Express: req.originalUrl; nginx: proxy_pass without a path), or correct publicUrl`;
  const { config, protocol, raiseAlarm } = context;
  const { fixed } = config.senders;
  if (hasLegacyField(delivery, fixed ?? [], protocol) || (await hasKnownKey(delivery, fixed, context))) {
    raiseAlarm({ code: 'misconfigured', message });
  }
  throw new Fault('misconfigured', message);
}
