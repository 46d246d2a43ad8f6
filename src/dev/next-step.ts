// Finds advice for the user when an answer is not the expected one (dev.md §3.4). Sending and telling.ts call it
// whenever more becomes known about a delivery.
import { challengeIn } from '../auth/signed-challenge.ts';
import type { Entry } from './delivery-log.ts';
import type { Seller } from './sellers.ts';
import type { ShownFinding, Told } from './wire.ts';

/** The most characters of the advice, because it may quote a long reason. */
const MOST = 1_200;

const pathOf = (url: string): string => /^[^:]+:\/\/[^/?#]*([^?#]*)/.exec(url)?.[1] || '/';

type Word = (entry: Entry, seller: Seller) => string;
/** A rule that returns advice for an answer, or undefined if the rule does not apply. */
type Rule = (entry: Entry, seller: Seller) => string | undefined;

const isSuccess = (status = 0): boolean => status >= 200 && status < 300;

const lacks = (line: string): string =>
  `The receiver's senders lack dev's seller. Paste into its options: ${line}`;

const otherUrl = (publicUrl: string): string =>
  `This delivery was signed for ${publicUrl}, and the receiver verifies for another URL. Its publicUrl has to be exactly ${publicUrl} (or end in /* and cover it), or start dev with --public-url and the publicUrl of the receiver.`;

const NOT_APPROVED =
  'The receiver did not approve the proof of control: its option onChallenge has to resolve to true for it. Paste into its options: onChallenge: async ({ authMatches }) => authMatches,';

/**
 * Advice by the answer's error code, used if the receiver refuses a delivery that `explain` accepts. The receiver's
 * configuration then differs from that of dev's sellers.
 */
const BY_CODE: Readonly<Record<string, Word>> = {
  webhook_signature_key_unknown: (_, { line }) => lacks(line),
  webhook_signature_key_purpose_invalid: (_, { line }) =>
    `The receiver has this seller's key for another purpose than webhook-signing, or for another algorithm. Take its pins out, and paste into its options: ${line}`,
  webhook_signature_invalid: ({ row }, { publicUrl, line }) =>
    row.scheme === 'hmac'
      ? `The body was changed before the receiver got it, or the receiver has another secret. Give it the bytes as they came (Express: before express.json()), and paste into its options: ${line}`
      : otherUrl(publicUrl),
  webhook_target_uri_malformed: (_, { publicUrl }) => otherUrl(publicUrl),
  webhook_signature_tag_invalid: () =>
    'The receiver accepts another protocol name. Start dev with --protocol and the one of its option protocol.',
  webhook_signature_window_invalid: () =>
    "The receiver's clock differs from this machine's by more than a minute. Set it.",
  webhook_signature_digest_mismatch: () =>
    'The body was changed before the receiver got it. Mount the receiver before any body parser (Express: before express.json()).',
  webhook_signature_replayed: () =>
    'The receiver has used up this nonce before: it got this delivery already. Send it signed anew.',
  webhook_signature_rate_abuse: () => 'The receiver is at maxNoncesPerKey: wait five minutes, or raise it.',
  webhook_mode_mismatch: (_, { line }) =>
    `The receiver expects another scheme of this seller. Paste into its options: ${line}`,
  invalid_token: (_, { line }) => `The receiver has another token. Paste into its options: ${line}`,
  challenge_refused: () => NOT_APPROVED,
};

/** Advice by the status of the answer, used if no other rule has advice. */
const BY_STATUS: Readonly<Record<number, Word>> = {
  404: ({ row }, { forward }) =>
    `Nothing is mounted at POST ${pathOf(forward)} (404). Mount the receiver there, or start dev with another --forward than ${forward}.${row.code === undefined ? '' : ` It says ${row.code}.`}`,
  405: (_, { forward }) =>
    `${pathOf(forward)} does not take POST: the receiver has to be mounted for POST there.`,
  413: () => 'The body is over a limit of the receiver or of what stands in front of it: raise maxBodyBytes.',
  415: () =>
    'The receiver, or what stands in front of it, does not take this Content-Type or Content-Encoding.',
  429: () =>
    "The sender is over a cap of the receiver's: wait as Retry-After says, or raise maxRecordsPerSender.",
};

const noReason: Word = (_, { publicUrl }) =>
  `A 503 is a fault on the receiver's side, and its log says which: a publicUrl that is not ${publicUrl}, a body parser in front of it (Express: express.json()), senders without dev's seller, a handler that throws, or a store that is away. To see here which it is, paste into its file, and into its options:
import { devHooks } from 'proto-webhooks/testing';
...devHooks(),`;

const NO_ECHO =
  'The answer to a proof of control has to be exactly {"challenge": "<the same>"} with 2xx: the library answers so where onChallenge resolves to true. Pass it on as it is.';

/** Returns the latest reason that the receiver's hooks reported for the delivery. */
function reasonOf(tellings: readonly Told[]): string | undefined {
  const reasons = tellings.toReversed().flatMap((told): string[] => {
    if (told.hook === 'alarm') return [`alarm ${told.code}: ${told.message}`];
    if (told.hook === 'handled') return told.error === undefined ? [] : [`the handler failed: ${told.error}`];
    return told.detail === undefined ? [] : [`${told.code ?? 'refused'}: ${told.detail}`];
  });
  return reasons[0];
}

const fixOf = ({ says, fix }: ShownFinding): string => `${says} ${fix}`.trim();

function unanswered({ answer }: Entry, { forward }: Seller): string {
  if (answer?.outcome === 'timeout')
    return `No answer within 10 s from ${forward}. A handler that takes longer needs mode: 'inbox', or the receiver hangs.`;
  return `Nothing answers at ${forward}. Start the receiver (e.g. node server.mjs), or start dev with its address: --forward http://127.0.0.1:<port>/<path>.`;
}

const isHtml = ({ answer }: Entry): boolean =>
  /^text\/html/i.test(answer?.headers['content-type'] ?? '') ||
  /^\s*<(?:!doctype|html)/i.test(answer?.body ?? '');

const acceptedWrongly: Rule = ({ row: { expected, status } }) => {
  if (expected === undefined || !isSuccess(status)) return undefined;
  if (expected.status === '2xx') return NO_ECHO;
  const right = expected.code === undefined ? expected.status : `${expected.status} ${expected.code}`;
  return `The receiver accepted what it has to refuse (${right}). See that it verifies every delivery, and before any handler runs.`;
};

const byCode: Rule = (entry, seller) => {
  const { code = '' } = entry.row;
  const word = Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : undefined;
  // A cause that `explain` has found describes the mistake better than the error code does.
  const isFound = entry.explanation?.ok === false && entry.explanation.findings.length > 0;
  return isFound ? undefined : word?.(entry, seller);
};

/**
 * Returns the reason that a hook reported because the receiver had no keys, and so found no sender. The reason names
 * each sender whose keys are missing.
 */
function keysOf(tellings: readonly Told[]): string | undefined {
  const told = tellings.findLast((one) => one.hook === 'outcome' && one.code === 'keys_unavailable');
  return told?.hook === 'outcome' && told.sender === undefined ? told.detail : undefined;
}

const keys: Rule = ({ tellings }, { agentUrl, line }) => {
  const detail = keysOf(tellings);
  if (detail === undefined) return undefined;
  if (!detail.includes(agentUrl)) return lacks(line);
  return detail.includes('cooling down')
    ? 'Wait 30 s, then send it signed anew: a receiver asks for keys at most once in that time.'
    : undefined;
};

/**
 * Advises the user to correct `publicUrl` if a hook reports that the delivery was signed for another URL. The hook's
 * message warns of a replay, but with dev the cause is a wrong `publicUrl`.
 */
const signedFor: Rule = ({ tellings }, { publicUrl }) =>
  tellings.some(
    (told) =>
      (told.hook === 'alarm' && told.code === 'public_url_mismatch') ||
      (told.hook === 'outcome' && told.code === 'misconfigured' && told.detail?.includes(' signed for ')),
  )
    ? otherUrl(publicUrl)
    : undefined;

const unavailable: Rule = (entry, seller) =>
  entry.row.status === 503 ? (reasonOf(entry.tellings) ?? noReason(entry, seller)) : undefined;

const redirected: Rule = ({ row: { status = 0 }, answer }) =>
  status >= 300 && status < 400
    ? `It redirects to ${answer?.headers['location'] ?? 'nowhere'}, and sellers do not follow. Give --forward the final URL.`
    : undefined;

const html: Rule = (entry, { forward }) =>
  // Some frameworks (Express) answer an unknown path with a 404 that is an HTML page. The rule for 404 handles it.
  isHtml(entry) && entry.row.status !== 404
    ? `A page of HTML came from POST ${pathOf(forward)}: another route answers there. Mount the receiver at that path, or start dev with another --forward.`
    : undefined;

const explained: Rule = ({ row: { status }, explanation }) => {
  const [finding] = explanation?.findings ?? [];
  return finding && (status === 400 || status === 401) ? fixOf(finding) : undefined;
};

const unapproved: Rule = ({ row: { status }, posted }) =>
  status === 403 && challengeIn(posted.body) ? NOT_APPROVED : undefined;

const byStatus: Rule = (entry, seller) => BY_STATUS[entry.row.status ?? 0]?.(entry, seller);

const otherwise: Word = ({ row: { status, code }, tellings }) =>
  reasonOf(tellings) ??
  `The receiver answered ${status}${code === undefined ? '' : ` ${code}`}. Its log says why.`;

/** The rules, in the order in which they are tried. The first that returns advice decides. */
const RULES: readonly Rule[] = [
  acceptedWrongly,
  byCode,
  keys,
  signedFor,
  unavailable,
  redirected,
  html,
  explained,
  unapproved,
  byStatus,
];

function answeredWrongly(entry: Entry, seller: Seller): string {
  for (const rule of RULES) {
    const text = rule(entry, seller);
    if (text !== undefined) return text;
  }
  return otherwise(entry, seller);
}

/** Returns advice about an unexpected answer. Returns undefined if the answer is as expected, or has not come yet. */
export function nextStep(entry: Entry, seller: Seller): string | undefined {
  const { row } = entry;
  if (row.state === 'sending' || row.state === 'captured' || row.asExpected !== false) return undefined;
  const text = row.status === undefined ? unanswered(entry, seller) : answeredWrongly(entry, seller);
  return text.length > MOST ? `${text.slice(0, MOST)}…` : text;
}
