// Finds a cause for each failed check of a delivery: changes one thing of the delivery, and makes the check again.
// `explainDelivery` calls `findCauses`.
import { hmacSecretsOf } from '../../auth/credentials.ts';
import { hmacProtocol } from '../../auth/hmac.ts';
import { readSignatureFields, MAX_VALIDITY_S } from '../../auth/rfc9421/checks.ts';
import { readContentDigest } from '../../auth/rfc9421/content-digest.ts';
import { fieldValue } from '../../shared/delivery.ts';
import { EDITION_NAMES, editionFor } from '../../shared/editions.ts';
import type { Protocol } from '../../shared/wire-names.ts';
import { MS_FROM } from '../shell.ts';
import { adviceFor } from './advice.ts';
import { gunzipped, searchBody } from './body-rewrites.ts';
import { type Again, type Case, type Finding, type Look, type Step, unknown } from './explain-case.ts';
import { byteForms, headerRepairs, sequenceText } from './header-forms.ts';
import { lookAtSignature } from './signature-search.ts';

const passes = (steps: readonly Step[], id: string): boolean =>
  steps.some((step) => step.id === id && step.verdict === 'pass');

/** Searches why check 1 (the headers can be read) failed: repairs the headers, and makes the checks again. */
const lookAtHeaders: Look = async ({ input }, step, again) => {
  for (const { headers, change } of headerRepairs(input.capture.headers)) {
    const capture = { ...input.capture, headers };
    const mended = { ...input, capture };
    if (!passes(await again.steps(mended), '1')) continue;
    const { findings } = await again.explain(mended);
    const others = findings.filter((finding) => finding.cause !== 'headers');
    return [{ step: step.id, proved: true, fix: '', ...change }, ...others];
  }
  return [];
};

const tagOf = ({ request }: Case): string => {
  const fields = readSignatureFields(request.delivery.headers);
  return fields.kind === 'parsed' ? (fields.input.parameters.tag ?? '') : '';
};

/** Returns the protocol that the signature's `tag` names; if there is none, the first accepted protocol. */
function protocolOf(made: Case): Protocol {
  const { protocols } = made.context;
  const tag = tagOf(made);
  return protocols.find(({ signatureTag }) => signatureTag === tag) ?? protocols[0];
}

/**
 * Explains why check 3 (`tag`) failed. A wrong tag usually contains a protocol name that the receiver does not accept.
 */
const lookAtTag: Look = async (made, step) => {
  const tag = tagOf(made);
  const name = /^([a-z][a-z0-9-]*)\/webhook-signing\/v1$/.exec(tag)?.[1];
  if (name === undefined)
    return [
      unknown(
        step,
        `The tag is ${JSON.stringify(tag)}.`,
        'The seller signed for another purpose; webhooks have the tag <protocol>/webhook-signing/v1.',
      ),
    ];
  return [
    {
      step: step.id,
      cause: 'protocol',
      says: `The seller calls the protocol ${JSON.stringify(name)}.`,
      fix: `Set protocol: '${name}' (here: --protocol ${name}); without the option proto and adcp are accepted.`,
      proved: true,
    },
  ];
};

/** Time zones differ from UTC by multiples of half an hour. Three zones with 45 minutes are not recognised. Seconds. */
const HALF_HOUR_S = 1_800;
/** The largest offset of a time zone from UTC. Seconds. */
const WIDEST_ZONE_S = 14 * 3_600;
/** The allowed deviation from a multiple of half an hour, for transit and small differences of clocks. Seconds. */
const ZONE_SLACK_S = 120;

function zoneText(seconds: number): string {
  const minutes = Math.round(Math.abs(seconds) / 60);
  const rest = minutes % 60;
  return `${seconds > 0 ? '+' : '-'}${Math.floor(minutes / 60)}${rest === 0 ? '' : `:${rest}`} h`;
}

type Why = Omit<Finding, 'step'>;

function millisecondsOf(created: number, expires: number): Why | undefined {
  const names = Object.entries({ created, expires }).flatMap(([name, value]) =>
    value >= MS_FROM ? [name] : [],
  );
  if (names.length === 0) return undefined;
  return {
    cause: 'clock-milliseconds',
    says: `${names.join(' and ')} ${names.length > 1 ? 'are' : 'is'} in milliseconds.`,
    fix: 'The seller has to write created and expires in Unix seconds (RFC 9421 §2.3).',
    proved: true,
  };
}

function validityOf(seconds: number): Why | undefined {
  if (seconds > 0 && seconds <= MAX_VALIDITY_S) return undefined;
  return {
    cause: 'validity-too-long',
    says: `expires is ${seconds} s after created; 1 to ${MAX_VALIDITY_S} are allowed.`,
    fix: `The seller has to set expires to created + ${MAX_VALIDITY_S} or less.`,
    proved: true,
  };
}

const CHECK_CLOCKS =
  'Check both clocks (NTP), and that deliveries do not wait in a queue after they are signed: every attempt has to be signed anew.';

/** The text that says how a receiver itself detects that its clock is wrong (verification.md §2.35). */
const OWN_CLOCK =
  "If the receiver's clock is wrong, it answers 503 clock_skew with an alarm once its store's clock shows that, or three deliveries in a row are off by a similar amount. Before that it answers 401.";

/**
 * Finds the cause of a `created` that is far from the time of receipt.
 * @param off the seconds by which `created` is later than the receipt; negative if earlier.
 * @param isLeast true if the time of receipt is unknown and `off` was computed with the current time. Then `created`
 *   was ahead by more than `off`.
 */
function skewOf(off: number, isLeast: boolean): Why {
  const zone = Math.round(off / HALF_HOUR_S) * HALF_HOUR_S;
  const far = `created is ${Math.abs(off)} s ${off > 0 ? 'ahead of' : 'behind'} the moment of receipt`;
  if (zone !== 0 && Math.abs(zone) <= WIDEST_ZONE_S && Math.abs(off - zone) <= ZONE_SLACK_S) {
    return {
      cause: 'clock-zone',
      says: `${far}: as if local time at ${zoneText(zone)} were taken for UTC.`,
      fix: `The seller, or your machine, has to make Unix seconds from UTC, not from local time. ${OWN_CLOCK}`,
      proved: false,
    };
  }
  if (isLeast && off > 0) {
    return {
      cause: 'clock-off',
      says: `created is still ${off} s ahead of this machine's clock: at the moment of receipt, which the capture does not have, it was further ahead.`,
      fix: `Give the moment of receipt: --received-at. ${CHECK_CLOCKS} ${OWN_CLOCK}`,
      proved: false,
    };
  }
  return {
    cause: 'clock-off',
    says: `${far}.`,
    fix: `${CHECK_CLOCKS} ${OWN_CLOCK}`,
    proved: false,
  };
}

/** Explains why check 5 failed: compares the signature's `created` and `expires` with the time of receipt. */
const lookAtClock: Look = async ({ request, input }, step) => {
  const fields = readSignatureFields(request.delivery.headers);
  if (fields.kind !== 'parsed') return [];
  const { created = 0, expires = 0 } = fields.input.parameters;
  const off = created - Math.round(request.arrivedAt / 1000);
  const why =
    millisecondsOf(created, expires) ??
    validityOf(expires - created) ??
    skewOf(off, input.receivedAtLatest === true);
  return [{ step: step.id, ...why }];
};

/**
 * Explains why check 8 (purpose of the key) failed. Finds another protocol edition (version) that allows the purpose,
 * or reports that none does.
 */
const lookAtPurpose: Look = async (made, step, again) => {
  const { input, request } = made;
  const { purposeMember } = protocolOf(made);
  const current = request.senders[0]?.edition ?? editionFor();
  const others = EDITION_NAMES.filter((name) => !current.keyPurposes || name !== current.name);
  for (const edition of others) {
    const senders = input.senders.map((sender) => ({ ...sender, edition }));
    const steps = await again.steps({ ...input, senders });
    if (!passes(steps, '8')) continue;
    const says = `The key's ${purposeMember} is allowed from edition ${edition} on.`;
    return [
      {
        step: step.id,
        cause: 'edition',
        says,
        fix: `Set edition: '${edition}' for this sender (here: --edition ${edition}).`,
        proved: true,
      },
    ];
  }
  return [
    {
      step: step.id,
      cause: 'key-purpose',
      says: step.detail ?? '',
      fix: `The seller has to publish the key with use "sig", key_ops ["verify"], ${purposeMember} "webhook-signing", and an alg that fits kty and crv.`,
      proved: true,
    },
  ];
};

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

/** Explains why check 11 failed: searches for the body that has the digest in `Content-Digest`. */
const lookAtBody: Look = async ({ input, request, context }, step) => {
  const { headers, rawBody } = request.delivery;
  const digest = readContentDigest(headers.get('content-digest') ?? []);
  if (typeof digest === 'string' || digest.sha256 === undefined) {
    return [
      unknown(
        step,
        'Content-Digest has no sha-256 member.',
        'The seller has to send Content-Digest: sha-256=:…:.',
      ),
    ];
  }
  const signed = digest.sha256;
  const text = sequenceText(fieldValue(headers, 'content-digest') ?? '', 'sha-256') ?? '';
  const actual = context.hashes.sha256(rawBody);
  const form = byteForms(text, 'Content-Digest').find(({ bytes }) => sameBytes(bytes, actual));
  if (form) return [{ step: step.id, proved: true, fix: '', ...form.change }];
  const isSigned = (bytes: Uint8Array): boolean => sameBytes(signed, context.hashes.sha256(bytes));
  return searchBody(rawBody, isSigned, step.id, input.mostWork);
};

function timeFinding(timestamp: string, receivedAt: number, step: string): Finding {
  const inMs = Number(timestamp) >= MS_FROM;
  return {
    step,
    cause: inMs ? 'clock-milliseconds' : 'clock-off',
    says: inMs
      ? 'The timestamp is in milliseconds.'
      : `The timestamp is ${Math.abs(Number(timestamp) - Math.round(receivedAt / 1000))} s away from the moment of receipt; at most 300 s are allowed.`,
    fix: inMs
      ? 'The seller has to send Unix seconds.'
      : 'Check both clocks (NTP), and that deliveries do not wait in a queue after they are signed.',
    proved: inMs,
  };
}

/**
 * A form of the legacy HMAC signature that a seller may use by mistake. `prefix` returns the text that such a seller
 * puts before the body when it signs.
 */
interface HmacForm {
  readonly prefix: (timestamp: string) => string;
  readonly says: string;
  readonly fix: string;
}

const HMAC_FORMS: readonly HmacForm[] = [
  {
    prefix: (timestamp) => `${timestamp}.`,
    says: 'The signature is right, but not in the required form.',
    fix: 'The seller has to write sha256= and lower-case hexadecimal digits.',
  },
  {
    prefix: () => '',
    says: 'The signature is over the body alone, without "<timestamp>." in front.',
    fix: 'The seller has to sign <timestamp>.<raw body>.',
  },
  {
    prefix: (timestamp) => timestamp,
    says: 'The signature is over the timestamp and the body without the dot between them.',
    fix: 'The seller has to sign <timestamp>.<raw body>.',
  },
];

/** Explains why the legacy HMAC failed: checks its timestamp, its form, and the body. */
const lookAtHmac: Look = async ({ input, request, context }, step) => {
  const { headers, rawBody } = request.delivery;
  const named = hmacProtocol(headers, context.protocols);
  const { hmacSignatureHeader, hmacTimestampHeader } = 'kind' in named ? context.protocols[0] : named;
  const timestamp = fieldValue(headers, hmacTimestampHeader) ?? '';
  if (step.code === 'webhook_signature_window_invalid') {
    return [timeFinding(timestamp, request.arrivedAt, step.id)];
  }
  if (step.code !== 'webhook_signature_invalid') return [];
  const given = (fieldValue(headers, hmacSignatureHeader) ?? '').replace(/^sha256=/i, '').toLowerCase();
  const encoder = new TextEncoder();
  const secrets = request.senders.flatMap(({ auth }) => hmacSecretsOf(auth));
  const isSigned = (prefix: string, body: Uint8Array): boolean =>
    secrets.some((secret) => {
      const mac = context.hashes.hmacSha256(encoder.encode(secret), encoder.encode(prefix), body);
      return Buffer.from(mac).toString('hex') === given;
    });
  const form = HMAC_FORMS.find(({ prefix }) => isSigned(prefix(timestamp), rawBody));
  if (form) return [{ step: step.id, cause: 'headers', says: form.says, fix: form.fix, proved: true }];
  const found = searchBody(rawBody, (bytes) => isSigned(`${timestamp}.`, bytes), step.id, input.mostWork);
  if (found.some(({ proved }) => proved)) return found;
  const says = 'No given secret makes this signature of the body.';
  const fix =
    'Compare the secret with the credentials of push_notification_config.authentication: white space, quotes, an older one.';
  return [unknown(step, says, fix), ...found];
};

/**
 * The functions that search the cause, by the id of the failed check. If no function is listed, or it finds nothing,
 * the advice for the check's error code is used.
 */
const LOOKS: Readonly<Record<string, Look>> = {
  '1': lookAtHeaders,
  '3': lookAtTag,
  '5': lookAtClock,
  '7': lookAtSignature,
  '8': lookAtPurpose,
  '10': lookAtSignature,
  '11': lookAtBody,
  hmac: lookAtHmac,
};

/** The ids of checks that fail if the body was changed in transit: the digest and the legacy HMAC. */
const BODY_STEPS = ['11', 'hmac'];

/**
 * If a check of the body failed and the body is compressed, makes all checks again without gzip. If the checks of the
 * body passed, the seller signed the compressed body, so it stays compressed.
 * @returns findings for each failed check; undefined if there is no gzip to remove.
 */
async function undoGzip(
  { input }: Case,
  failed: readonly Step[],
  again: Again,
): Promise<Finding[] | undefined> {
  const { headers, body: zipped, bodyless } = input.capture;
  const body = bodyless || !failed.some(({ id }) => BODY_STEPS.includes(id)) ? undefined : gunzipped(zipped);
  if (!body) return undefined;
  const others = headers.filter(([name]) => name.toLowerCase() !== 'content-encoding');
  const { steps, findings } = await again.explain({
    ...input,
    capture: { ...input.capture, headers: others, body },
  });
  const gzip: Omit<Finding, 'step'> = {
    cause: 'body-gzip',
    says: 'The body was compressed with gzip in transit: the seller signed the uncompressed one.',
    fix: 'Turn off the compression of requests in the proxy or gateway in front of the receiver, or in the HTTP client of the seller, which compresses after it signed.',
    proved: findings.every(({ step, proved }) => proved || !BODY_STEPS.includes(step)),
  };
  return failed.flatMap(({ id }) => {
    const left = findings.filter(({ step }) => step === id);
    const isOwn = BODY_STEPS.includes(id) || steps.some((step) => step.id === id && step.verdict !== 'fail');
    return isOwn ? [{ step: id, ...gzip }, ...left] : left;
  });
}

async function causesOf(made: Case, step: Step, again: Again): Promise<readonly Finding[]> {
  const found = (await LOOKS[step.id]?.(made, step, again)) ?? [];
  if (found.length > 0) return found;
  return [
    adviceFor(step) ??
      unknown(
        step,
        step.detail ?? '',
        `See docs/errors.md${step.code === undefined ? '' : `#${step.code}`}.`,
      ),
  ];
}

/** Returns the causes of failed checks, at least one for each. */
export async function findCauses(
  made: Case,
  steps: readonly Step[],
  again: Again,
): Promise<readonly Finding[]> {
  const failed = steps.filter(({ verdict }) => verdict === 'fail');
  const unzipped = await undoGzip(made, failed, again);
  if (unzipped) return unzipped;
  const findings: Finding[] = [];
  for (const step of failed) findings.push(...(await causesOf(made, step, again)));
  return findings;
}
