// Makes deliveries, posts each once, and logs the result (dev.md §2.1, §2.2). The API, scenarios and the webhooks of
// orders use it.
import type { TaskStatus } from '../events/event.ts';
import { readEvent } from '../events/index.ts';
import type { Jwk } from '../crypto/engine.ts';
import { challengeIn } from '../auth/signed-challenge.ts';
import { fieldValue, headerFields } from '../shared/delivery.ts';
import type { EditionName } from '../shared/editions.ts';
import { protocolsFor } from '../shared/wire-names.ts';
import { payloadBytes } from '../sender/signed-delivery.ts';
import type { PayloadInput, SignedDelivery } from '../sender/sign.ts';
import type { Members } from '../testing/payloads.ts';
import { echoes, makeDelivery, sampleChallenge } from '../testing/seller-delivery.ts';
import { post } from '../testing/seller-post.ts';
import { ApiError, badRequest } from './api-error.ts';
import { expectedFor } from './choices.ts';
import type { Answer, DeliveryLog, Entry, Posted } from './delivery-log.ts';
import { expectedBy, explainedSent, linesOf, type Explained } from './explaining.ts';
import { nextStep } from './next-step.ts';
import { payloadsOf } from './payloads.ts';
import type { SendOrder } from './requests.ts';
import type { Seller, Sellers } from './sellers.ts';
import type { DeliveryRow, DevPayload, Expected, ResendRequest } from './wire.ts';

/** The most characters of a cause, or of an error code, in a list row. */
const MOST_SAYS = 400;

/** A delivery that is still to be made. */
export interface Draft {
  readonly seller: Seller;
  readonly what: string;
  readonly payload: PayloadInput;
  /** The private key to sign with. Default: the seller's Ed25519 key. */
  readonly key?: Jwk;
  /**
   * True if the body is a proof of control (a challenge to the owner of the URL). It is signed even if the seller
   * otherwise uses HMAC or a bearer token.
   */
  readonly signed?: boolean;
  readonly mistake?: string | undefined;
  /** The expected answer. Default: the answer that follows from the explanation by `explain`. */
  readonly expected?: Expected;
  readonly row?: Partial<Pick<DeliveryRow, 'edition' | 'scenario' | 'resent' | 'mistake'>>;
  /** Called with the number of the delivery before it is posted. */
  readonly added?: (id: number) => void;
}

/** The parts of dev that are needed to send. */
export interface SendingParts {
  readonly sellers: Sellers;
  readonly log: DeliveryLog;
  /** The protocol name in wire identifiers, e.g. `proto`. */
  readonly protocol: string;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  /** The time limit for the receiver's whole answer, ms. */
  readonly timeoutMs: number;
  /** Aborts when dev ends. */
  readonly signal: AbortSignal;
}

/** Makes deliveries and posts them, each once (dev.md §2.1, §2.2). */
export interface Sending {
  readonly send: (order: SendOrder) => Promise<DeliveryRow>;
  readonly sendDraft: (draft: Draft) => Promise<DeliveryRow>;
  /** Posts a delivery as it is, without signing it again. */
  readonly sendAgain: (posted: Posted, draft: Omit<Draft, 'payload'>) => Promise<DeliveryRow>;
  /** Signs a delivery without sending it. */
  readonly make: (draft: Draft) => Promise<SignedDelivery>;
  readonly resend: (entry: Entry, how: ResendRequest['how']) => Promise<DeliveryRow>;
}

/** Describes a payload in words, for the list. */
function whatOf(payload: DevPayload): string {
  switch (payload.kind) {
    case 'task':
      return `${payload.status} (${payload.transport})`;
    case 'report':
      return `report: ${payload.type}`;
    case 'family':
      return payload.name;
    case 'challenge':
      return 'proof of control';
    case 'body':
      return 'a body of your own';
  }
}

/** The statuses that the agent transport sends as an update, and not as a whole task. */
const INTERIM: readonly TaskStatus[] = ['submitted', 'working', 'input-required', 'auth-required'];

/** Returns the member that sets the task's id. The member's name depends on the transport and the status. */
function taskMembers({ transport, status, taskId }: DevPayload & { readonly kind: 'task' }): Members {
  if (taskId === undefined) return {};
  if (transport === 'tool') return { task_id: taskId };
  return INTERIM.includes(status) ? { taskId } : { id: taskId };
}

function bodyOf(payload: DevPayload, seller: Seller, edition: EditionName, now: () => number): PayloadInput {
  const samples = payloadsOf(edition, now);
  switch (payload.kind) {
    case 'task':
      return samples[payload.transport](payload.status, taskMembers(payload));
    case 'report':
      return samples.report(payload.type);
    case 'family':
      return samples.family(payload.name);
    case 'challenge':
      return sampleChallenge(seller.agentUrl, seller.auth);
    case 'body':
      return payload.text;
  }
}

/** Returns the idempotency key of the event in a body. Returns undefined if no event can be read. */
export function keyOf(body: Uint8Array): string | undefined {
  const reading = readEvent(body);
  return reading.ok ? reading.event.idempotencyKey : undefined;
}

/** Returns the value of the signature header or HMAC header, by which the receiver's hooks name a refused delivery. */
export function proofOf(posted: Posted, protocol: string): string | undefined {
  const headers = headerFields(linesOf(posted));
  const names = protocolsFor(protocol).map(({ hmacSignatureHeader }) => hmacSignatureHeader);
  return ['signature', ...names]
    .map((name) => fieldValue(headers, name))
    .find((value) => value !== undefined);
}

/**
 * True if the answer is the expected one. A 2xx to a proof of control (a challenge to the owner of the URL) must also
 * echo the challenge.
 */
function fits({ status, code, or }: Expected, answer: Answer, body: Uint8Array): boolean {
  if (or !== undefined && answer.status === or) return true;
  if (status === '2xx') {
    const challenge = challengeIn(body);
    return answer.outcome === 'success' && (!challenge || echoes(answer.body, challenge['challenge']));
  }
  return answer.status === status && (code === undefined || answer.code === code);
}

/** Returns the first cause that `explain` has found, shortened for the list row. */
export function causeIn({ explanation }: Explained): Pick<DeliveryRow, 'cause'> {
  const [finding] = explanation?.findings ?? [];
  return finding ? { cause: { cause: finding.cause, says: finding.says.slice(0, MOST_SAYS) } } : {};
}

/** Makes the functions that send deliveries of these sellers. */
export function createSending({ sellers, log, protocol, now, timeoutMs, signal }: SendingParts): Sending {
  /**
   * The protocol name that `explain` gets. It is left out for the two known names, because a receiver without the
   * option `protocol` accepts both.
   */
  const explainBy = protocol === 'proto' || protocol === 'adcp' ? undefined : protocol;

  const make: Sending['make'] = ({ seller, payload, key, signed, mistake }) =>
    makeDelivery({
      url: seller.publicUrl,
      payload,
      key: key ?? seller.keys.ed25519,
      keys: seller.keys,
      protocol,
      now,
      auth: signed ? undefined : seller.auth,
      mistake,
      sign: undefined,
    });

  /**
   * True if a receiver has already used up the nonce of this signature. The status of an earlier answer to the same
   * signature shows it: 2xx, 400, 403 or 409.
   */
  const isUsed = (proof: string | undefined): boolean =>
    proof !== undefined &&
    log.findLast(
      (entry) => entry.proof === proof && /^(?:2..|400|403|409)$/.test(String(entry.row.status)),
    ) !== undefined;

  async function answered(entry: Entry, posted: Posted, seller: Seller): Promise<DeliveryRow> {
    const { id } = entry.row;
    const began = performance.now();
    let cut = false;
    const onCut = (): void => {
      cut = true;
    };
    // The cast is safe: Node's client also takes other methods, and headers on several lines, which a captured request
    // may have.
    const sent = posted as SignedDelivery;
    const result = await post(sent, { to: seller.forward, timeoutMs, signal, onCut }).catch(
      (error: unknown) => {
        // The HTTP client throws: a captured request may have a header or method that it cannot send.
        log.change(id, { row: { state: 'unanswered', asExpected: false } });
        throw badRequest(`It cannot be sent: ${(error as Error).message}`);
      },
    );
    const ms = Math.round(performance.now() - began);
    const { status, code } = result;
    const answer = { ...result, cut };
    const known = log.change(id, {
      answer,
      row: {
        state: status === undefined ? 'unanswered' : 'answered',
        ms,
        ...(status !== undefined && { status }),
        ...(code !== undefined && { code: code.slice(0, MOST_SAYS) }),
        ...(entry.row.expected && { asExpected: fits(entry.row.expected, answer, posted.body) }),
      },
    });
    return known ? withNext(known, seller) : entry.row;
  }

  /** Adds advice to the row if the answer is not the expected one. */
  function withNext(entry: Entry, seller: Seller): DeliveryRow {
    const next = nextStep(entry, seller);
    if (next === undefined || next === entry.row.next) return entry.row;
    return log.change(entry.row.id, { row: { next } })?.row ?? entry.row;
  }

  const sendAgain: Sending['sendAgain'] = async (posted, { seller, what, mistake, expected, row, added }) => {
    const at = now();
    const proof = proofOf(posted, protocol);
    const explained = await explainedSent({
      posted,
      seller,
      at,
      protocol: explainBy,
      replayed: isUsed(proof),
    });
    const { explanation } = explained;
    const right = expected ?? (explanation && expectedBy(explanation));
    const entry = log.add({
      posted,
      to: seller.forward,
      key: keyOf(posted.body),
      proof,
      ...explained,
      row: {
        at,
        state: 'sending',
        what,
        scheme: seller.scheme,
        ...(mistake !== undefined && { mistake }),
        ...(right && { expected: right }),
        ...causeIn(explained),
        ...row,
      },
    });
    added?.(entry.row.id);
    return answered(entry, posted, seller);
  };

  const sendDraft: Sending['sendDraft'] = async (draft) => sendAgain(await make(draft), draft);

  return {
    make,
    sendAgain,
    sendDraft,
    send({ payload, scheme, key, edition, mistake }) {
      const seller = sellers.byScheme[scheme];
      const right: Expected | undefined = payload.kind === 'body' ? undefined : { status: '2xx' };
      const expected = mistake === undefined ? right : expectedFor(mistake);
      return sendDraft({
        seller,
        what: whatOf(payload),
        payload: payloadBytes(bodyOf(payload, seller, edition, now)),
        key: seller.keys[key],
        signed: payload.kind === 'challenge',
        mistake,
        ...(expected && { expected }),
        row: { edition },
      });
    },
    async resend(entry, how) {
      const { row, posted, bytes } = entry;
      if (bytes > posted.body.byteLength) {
        throw new ApiError(
          'not_kept',
          `Only the first ${posted.body.byteLength} of its ${bytes} bytes are kept.`,
        );
      }
      const seller = sellers.byScheme[row.scheme ?? 'signature'];
      const of = { seller, what: row.what, row: { resent: { of: row.id, how }, ...pick(row) } };
      if (how === 'anew') {
        return sendDraft({ ...of, payload: posted.body, signed: isSigned(posted) });
      }
      return sendAgain({ ...posted, url: seller.publicUrl }, of);
    },
  };
}

const pick = ({ edition, mistake }: DeliveryRow): Pick<DeliveryRow, 'edition' | 'mistake'> => ({
  ...(edition && { edition }),
  ...(mistake !== undefined && { mistake }),
});

const isSigned = (posted: Posted): boolean => headerFields(linesOf(posted)).has('signature-input');
