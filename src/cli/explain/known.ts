import { readSignatureFields } from '../../auth/rfc9421/checks.ts';
import type { AuthRequest } from '../../auth/contract.ts';
import type { KeyResolver } from '../../keys/contract.ts';
import type { Setup } from '../../vectors/subject.ts';
import type { Step } from './checklist.ts';

/** What is known of the senders' revocation list. Key ids that it revokes are with the senders. */
export interface KnownRevocations {
  /** `none`: there is no list, and none is required. `unusable`: stale, or none that a receiver takes, which answers 503. */
  readonly state: 'fresh' | 'none' | 'unusable' | 'unknown';
  /** In words. */
  readonly detail?: string;
}

/** What is known beyond the capture itself; what is absent nobody looked at. */
export interface Known {
  readonly revocations?: KnownRevocations | undefined;
  /** Why a receiver could not tell which keys count (check 7), which answers 503. */
  readonly keysFault?: string | undefined;
  /** Of the receiver's store. */
  readonly seen?: Pick<Setup, 'usedNonces' | 'fullKids'> | undefined;
}

/**
 * Checks 7 and 9 as a receiver that knows this makes them: a key that is revoked stays so however old the list is.
 */
export function withKnown(keys: KeyResolver, { revocations, keysFault }: Known): KeyResolver {
  return {
    ...keys,
    ...(keysFault !== undefined && { find: async () => ({ candidates: [], undecided: [keysFault] }) }),
    revocation: async (...asked) => {
      const state = await keys.revocation(...asked);
      return state === 'valid' && revocations?.state === 'unusable' ? 'stale' : state;
    },
  };
}

const UNSEEN: KnownRevocations = {
  state: 'unknown',
  detail: 'no revocation list was looked at: --agent-url looks',
};

/** The row of check 9: it passes only where somebody looked for a list. */
export function revocationRow(row: Step, { revocations = UNSEEN }: Known): Step {
  const { state, detail } = revocations;
  const why = detail === undefined ? {} : { detail };
  if (row.code === 'webhook_signature_revocation_stale') return { ...row, ...why };
  if (row.verdict !== 'pass') return row;
  return state === 'unknown' ? { ...row, verdict: 'open', ...why } : { ...row, ...why };
}

const REPLAY: Step = {
  id: '12',
  title: 'not seen before, under the caps (9a, 12, 13)',
  verdict: 'open',
  detail: "only the receiver's store knows",
};

/** Checks 9a and 12: open, but where it is known what the store has, and the checks before them passed. */
export function storeRow({ delivery }: AuthRequest, before: readonly Step[], { seen }: Known): Step {
  const fields = readSignatureFields(delivery.headers);
  if (!seen || fields.kind !== 'parsed' || before.some(({ verdict }) => verdict === 'fail')) return REPLAY;
  const { keyid, nonce } = fields.input.parameters;
  if (seen.fullKids.some((kid) => kid === keyid)) {
    const detail = `The live nonces of ${JSON.stringify(keyid)} are at maxNoncesPerKey.`;
    return { ...REPLAY, id: '9a', verdict: 'fail', code: 'webhook_signature_rate_abuse', detail };
  }
  if (!seen.usedNonces.some((used) => used.keyid === keyid && used.nonce === nonce)) return REPLAY;
  return {
    ...REPLAY,
    verdict: 'fail',
    code: 'webhook_signature_replayed',
    detail: 'The nonce was seen before.',
  };
}
