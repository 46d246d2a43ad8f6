// Explains deliveries with the code of the subcommand `explain` and the sellers' keys, and shows the text that was
// signed (dev.md §3.1). Sending, captures and the API's view of a delivery call it.
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

/** Returns the header lines of a delivery, in the order of `headers`. */
export const linesOf = ({ headers }: Pick<Posted, 'headers'>): HeaderLine[] =>
  Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map((value): HeaderLine => [name, value]),
  );

/** Returns the path and query of a URL unchanged; `new URL` might rewrite them. */
const targetOf = (url: string): string => /^[^:]+:\/\/[^/?#]*([^#]*)/.exec(url)?.[1] || '/';

/**
 * Returns the header lines as the receiver gets them: those of the delivery, and `Host` and `Content-Length` if the
 * HTTP client adds them.
 */
export function wireLines(posted: Posted, bytes: number): HeaderLine[] {
  const own = linesOf(posted);
  const added: readonly HeaderLine[] = [
    ['Host', new URL(posted.url).host],
    ['Content-Length', String(bytes)],
  ];
  const has = (name: string): boolean => own.some(([one]) => one.toLowerCase() === name.toLowerCase());
  return [...added.filter(([name]) => !has(name)), ...own];
}

/** A delivery that dev sends, and the facts that `explain` needs about it. */
interface Explaining {
  readonly posted: Posted;
  readonly seller: Seller;
  /** The time of sending, Unix ms. */
  readonly at: number;
  /** The only protocol name that the receiver accepts. Undefined if the receiver accepts every known name. */
  readonly protocol: string | undefined;
  /** True if an earlier delivery used up the same nonce, so that a receiver must refuse this delivery as a replay. */
  readonly replayed: boolean;
}

/** Returns the key id and the nonce of a delivery's signature. Returns undefined unless both can be read. */
export function signatureNames(
  posted: Posted,
): { readonly keyid: string; readonly nonce: string } | undefined {
  const fields = readSignatureFields(headerFields(linesOf(posted)));
  if (fields.kind !== 'parsed') return undefined;
  const { keyid, nonce } = fields.input.parameters;
  return keyid === undefined || nonce === undefined ? undefined : { keyid, nonce };
}

/** Makes the input of `explain` for a delivery that dev sends. */
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

/** The explanation of a delivery, or the reason why the delivery cannot be explained. */
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
 * The most bytes that a search for a cause may process: a part of a second. Dev answers no request meanwhile, so it
 * stops earlier than the subcommand `explain`.
 */
const MOST_WORK = 48 * 1024 * 1024;

/**
 * Explains a request in the form of a capture. It does not reject for a request that cannot be explained: the result
 * then has the reason.
 */
export async function explained(input: ExplainInput, notes: readonly string[] = []): Promise<Explained> {
  try {
    return { explanation: shown(await explainDelivery({ ...input, mostWork: MOST_WORK }), notes) };
  } catch (error) {
    // These errors mean that the pasted keys are unusable, or that the URL has no canonical form.
    if (isOfKind(error, ConfigError) || isOfKind(error, TargetUriError))
      return { explainError: error.message };
    throw error;
  }
}

/** Explains a delivery that dev sends, with the keys of its seller. */
export const explainedSent = (what: Explaining): Promise<Explained> => explained(inputOf(what));

/** Returns the answer that a correct receiver gives to a delivery with this explanation. */
export function expectedBy({ ok, steps }: ShownExplanation): Expected {
  const failed = ok ? undefined : steps.find(({ verdict }) => verdict === 'fail');
  if (!failed) return { status: '2xx' };
  const { code = '' } = failed;
  const status = Object.hasOwn(ANSWERS, code) ? ANSWERS[code as RefusedCode].status : 503;
  return { status, ...((status === 400 || status === 401) && { code }) };
}

/** The most characters of a signature base (the text that is signed) that are shown. */
const MOST_BASE = 65_536;

/**
 * Returns the text that the delivery's signature or HMAC covers, as a receiver at `url` builds it. Returns undefined if
 * the text cannot be built.
 */
export function baseOf(posted: Posted, url: string, protocol: string): string | undefined {
  const headers = headerFields(linesOf(posted));
  const fields = readSignatureFields(headers);
  if (fields.kind === 'parsed') {
    const { components, raw } = fields.input;
    // The URL of a captured request may be invalid.
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
