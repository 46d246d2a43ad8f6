// Explains deliveries by `explain` of the command line with the sellers' keys, and shows the text that was signed
// (dev.md §3.1). Sending, captures and the API's view of a delivery call it.
import { readSignatureFields } from '../auth/rfc9421/checks.ts';
import { TargetUriError } from '../auth/rfc9421/host.ts';
import { signatureBase } from '../auth/rfc9421/signature-base.ts';
import { canonicalOrUndefined } from '../config/public-url.ts';
import type { Capture } from '../cli/capture/capture.ts';
import type { ExplainInput, Explanation } from '../cli/explain/explain-case.ts';
import { explainDelivery } from '../cli/explain/explain.ts';
import { fieldValue, headerFields } from '../shared/delivery.ts';
import { ConfigError, isOfKind } from '../shared/errors.ts';
import { protocolsFor } from '../shared/wire-names.ts';
import { ANSWERS } from '../stages/respond.ts';
import type { RefusedCode } from '../shared/codes.ts';
import type { Posted } from './delivery-log.ts';
import { senderOf, type Seller } from './sellers.ts';
import type { Expected, HeaderLine, ShownExplanation } from './wire.ts';

/** Header lines of a delivery, in their order. */
export const linesOf = ({ headers }: Pick<Posted, 'headers'>): HeaderLine[] =>
  Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map((value): HeaderLine => [name, value]),
  );

/** The path and query of a URL, as they stand. */
const targetOf = (url: string): string => /^[^:]+:\/\/[^/?#]*([^#]*)/.exec(url)?.[1] || '/';

/** The header lines on the wire: those of the delivery, and those that the client adds, which the receiver sees. */
export function wireLines(posted: Posted, bytes: number): HeaderLine[] {
  const own = linesOf(posted);
  const added: readonly HeaderLine[] = [
    ['Host', new URL(posted.url).host],
    ['Content-Length', String(bytes)],
  ];
  const has = (name: string): boolean => own.some(([one]) => one.toLowerCase() === name.toLowerCase());
  return [...added.filter(([name]) => !has(name)), ...own];
}

/** A delivery to explain, and the facts that explain it. */
interface Explaining {
  readonly posted: Posted;
  readonly seller: Seller;
  /** Unix ms. */
  readonly at: number;
  /** The name of the protocol, if receivers accept one name alone. */
  readonly protocol: string | undefined;
  /** True if its nonce was used by a delivery that was accepted. */
  readonly replayed: boolean;
}

/** The key id and the nonce of a signature; undefined unless both can be read. */
export function signatureNames(
  posted: Posted,
): { readonly keyid: string; readonly nonce: string } | undefined {
  const fields = readSignatureFields(headerFields(linesOf(posted)));
  if (fields.kind !== 'parsed') return undefined;
  const { keyid, nonce } = fields.input.parameters;
  return keyid === undefined || nonce === undefined ? undefined : { keyid, nonce };
}

/** The input of `explain` for a delivery that dev sends. */
function inputOf({ posted, seller, at, protocol, replayed }: Explaining): ExplainInput {
  const capture: Capture = {
    form: 'raw HTTP',
    method: posted.method,
    url: undefined,
    target: targetOf(seller.publicUrl),
    headers: wireLines(posted, posted.body.byteLength),
    body: posted.body,
    notes: [],
  };
  const names = replayed ? signatureNames(posted) : undefined;
  return {
    capture,
    url: seller.publicUrl,
    senders: [senderOf(seller)],
    receivedAt: at,
    revocations: { state: 'none', detail: 'dev publishes no revocation list' },
    seen: { usedNonces: names ? [names] : [], fullKids: [] },
    ...(protocol !== undefined && { protocol }),
  };
}

/** The explanation, or the reason why there is none. */
export interface Explained {
  readonly explanation?: ShownExplanation;
  readonly explainError?: string;
}

const shown = ({ ok, steps, findings }: Explanation, notes: readonly string[]): ShownExplanation => ({
  ok,
  steps: steps.map(({ id, title, verdict, code, detail }) => ({
    id,
    title,
    verdict,
    ...(code !== undefined && { code }),
    ...(detail !== undefined && { detail }),
  })),
  findings,
  notes,
});

/**
 * The most bytes that one search goes through: a part of a second, in which dev answers nobody. `explain` of the
 * command line searches on.
 */
const MOST_WORK = 48 * 1024 * 1024;

/** Explains a capture, or anything that is given as one. It rejects for nothing that the delivery is. */
export async function explained(input: ExplainInput, notes: readonly string[] = []): Promise<Explained> {
  try {
    return { explanation: shown(await explainDelivery({ ...input, mostWork: MOST_WORK }), notes) };
  } catch (error) {
    // The pasted keys are unusable, or the URL has no canonical form.
    if (isOfKind(error, ConfigError) || isOfKind(error, TargetUriError))
      return { explainError: error.message };
    throw error;
  }
}

/** Explains a delivery of dev's by its seller's keys. */
export const explainedSent = (what: Explaining): Promise<Explained> => explained(inputOf(what));

/** The answer of a right receiver to what `explain` says of a delivery. */
export function expectedBy({ ok, steps }: ShownExplanation): Expected {
  const failed = ok ? undefined : steps.find(({ verdict }) => verdict === 'fail');
  if (!failed) return { status: '2xx' };
  const { code = '' } = failed;
  const status = Object.hasOwn(ANSWERS, code) ? ANSWERS[code as RefusedCode].status : 503;
  return { status, ...((status === 400 || status === 401) && { code }) };
}

/** The most characters of a base that are shown. */
const MOST_BASE = 65_536;

/** The text that the signature or the HMAC of a delivery is over, as a receiver with this URL makes it. */
export function baseOf(posted: Posted, url: string, protocol: string): string | undefined {
  const headers = headerFields(linesOf(posted));
  const fields = readSignatureFields(headers);
  if (fields.kind === 'parsed') {
    const { components, raw } = fields.input;
    // The URL of a capture may be none.
    const target = canonicalOrUndefined(url);
    const base = target && signatureBase(components, { method: posted.method, target, headers }, raw);
    return base?.slice(0, MOST_BASE);
  }
  const timestamps = protocolsFor(protocol).map(({ hmacTimestampHeader }) =>
    fieldValue(headers, hmacTimestampHeader),
  );
  const timestamp = timestamps.find((value) => value !== undefined);
  if (timestamp === undefined) return undefined;
  return `${timestamp}.${new TextDecoder().decode(posted.body)}`.slice(0, MOST_BASE);
}
