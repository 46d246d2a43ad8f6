// Lets vectors test this library: a receiver with a memory store, and with the vector's keys, clock and state.
// `runVectors` uses it by default; `proto-webhooks explain` uses `senderOf`.
import { canonicalAuthority } from '../auth/rfc9421/host.ts';
import { canonicalTargetUri, signatureBase } from '../auth/rfc9421/signature-base.ts';
import { parseSignatureInput } from '../auth/rfc9421/signature-input.ts';
import type { CryptoEngine, Jwk } from '../crypto/engine.ts';
import { createHashes } from '../crypto/hashes.ts';
import { fieldValue, headerFields } from '../shared/delivery.ts';
import { detectFormat, extractData } from '../events/index.ts';
import type { Receiver, ReceiverOptions } from '../config/receiver-options.ts';
import type { Outcome } from '../shared/outcome.ts';
import { createReceiverContext } from '../receiver/context.ts';
import { receiverOf } from '../receiver/receiver.ts';
import type { KeyFetch } from '../keys/key-resolver.ts';
import type { Sender } from '../config/sender-entry.ts';
import { storedNonce } from '../stages/ids.ts';
import type { AcceptRequest, Store } from '../stores/store.ts';
import { memoryStore } from '../stores/memory.ts';
import { answerData, answerError, discover, takesSecret } from './library-calls.ts';
import { DEFAULT_NOW_MS } from './shapes/read-shape.ts';
import type {
  SubjectAnswer,
  Arrival,
  OpenReceiver,
  Setup,
  Subject,
  VectorRequest,
  VectorSender,
} from './subject.ts';

/**
 * A vector's URL in the form that a receiver needs: `publicUrl`, and the request target if `publicUrl` cannot have that
 * URL.
 */
interface VectorUrl {
  readonly publicUrl: string;
  readonly requestTarget?: string;
}

const PARTS = /^(https?):\/\/([^/?#]*)([^#]*)/is;

/** The `publicUrl` for a vector whose URL no receiver can have. The vector's requests do not use it. */
const ELSEWHERE = 'https://receiver.invalid/';

function authorityOf(text: string, scheme: string): string | undefined {
  try {
    return canonicalAuthority(text.slice(text.lastIndexOf('@') + 1), scheme === 'http' ? 'http' : 'https');
  } catch {
    return undefined;
  }
}

function hasCanonicalForm(url: string): boolean {
  try {
    return canonicalTargetUri(url).targetUri !== '';
  } catch {
    return false;
  }
}

/**
 * Turns a vector's URL into the options of a receiver. The sender was given this URL, so it is the receiver's
 * `publicUrl`.
 *
 * The option `publicUrl` refuses URLs without a canonical form, and some with one (userinfo, fragment, `*`). For these,
 * `publicUrl` is a prefix, and the request brings path and query. If even the authority is invalid, the request target
 * is the vector's whole URL, and `publicUrl` is a different URL.
 */
function placeOf(url: string): VectorUrl {
  const [whole, schemeText = '', authorityText = '', rest = ''] = PARTS.exec(url) ?? [];
  if (whole === undefined) return { publicUrl: ELSEWHERE, requestTarget: `https://${url}` };
  const scheme = schemeText.toLowerCase();
  const authority = authorityOf(authorityText, scheme);
  if (authority === undefined) return { publicUrl: ELSEWHERE, requestTarget: url };
  const isPlain = !authorityText.includes('@') && !/[#*]/.test(url);
  if (isPlain && hasCanonicalForm(url)) return { publicUrl: url };
  const target = rest.startsWith('/') ? rest : `/${rest}`;
  return { publicUrl: `${scheme}://${authority}/*`, requestTarget: target };
}

const ORIGIN = 'https://operator.example';
const LIST_URL = `${ORIGIN}/revocations.json`;

/**
 * The time between two versions of the revocation list: the shortest that the library accepts (verification.md §5.26).
 * Ms.
 */
const INTERVAL_MS = 60_000;
/** The number of intervals after its `next_update` at which a revocation list becomes stale. */
const GRACE = 4;

/** Returns the URL of the senders' revocation list; undefined if the vector has none. */
export function revocationUrl({ revokedKids, revocationStaleMs }: Setup): string | undefined {
  return revokedKids.length > 0 || revocationStaleMs !== undefined ? LIST_URL : undefined;
}

/**
 * Returns the vector's revocation list as its operator would have published it. The list is fresh, or so old that it
 * became stale `revocationStaleMs` ago.
 */
function listOf({ nowMs, revokedKids, revocationStaleMs }: Setup): object {
  const stale = revocationStaleMs ?? 0;
  const next = stale > 0 ? nowMs - GRACE * INTERVAL_MS - stale : nowMs + INTERVAL_MS;
  return {
    version: 1,
    issuer: ORIGIN,
    updated: new Date(next - INTERVAL_MS).toISOString(),
    next_update: new Date(next).toISOString(),
    revoked_kids: revokedKids,
    revoked_jtis: [],
  };
}

/** Makes a `fetch` that serves the vector's revocation list. Nothing else is fetched, because the keys are pinned. */
function revocationTransport(setup: Setup): KeyFetch {
  return async (url) => {
    if (url !== LIST_URL) throw new Error(`a vector has no document at ${url}`);
    return Response.json(listOf(setup));
  };
}

/** The time for which used nonces are kept, longer than any vector takes. Ms. */
const LIFE_MS = 600_000;

function burning(sender: string, keyid: string, nonce: string, nowMs: number): AcceptRequest {
  return {
    acceptId: `burned ${keyid} ${nonce}`,
    sender,
    mode: 'inline',
    nonce: { keyid, nonce, nowMs, expiresAtMs: nowMs + LIFE_MS },
    leaseMs: 8_000,
    limits: {
      maxRecordsPerSender: 1_000,
      maxPendingBytesPerSender: 1_000,
      maxNoncesPerKey: 1_000,
      maxNonces: 1_000,
    },
    retry: { attempts: 1, crashes: 1 },
    retentionMs: 86_400_000,
  };
}

/** Puts the vector's used nonces into the store, without an event (`Store.accept`), as deliveries would. */
async function burnNonces(store: Store, { senders, usedNonces, fullKids, nowMs }: Setup): Promise<void> {
  const hashes = createHashes();
  const filling = fullKids.map((keyid) => ({ keyid, nonce: 'the nonce that fills the cap' }));
  for (const { agentUrl } of senders) {
    for (const used of [...usedNonces, ...filling]) {
      const { keyid, nonce } = storedNonce(used, hashes);
      await store.accept(burning(agentUrl, keyid, nonce, nowMs));
    }
  }
}

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** A key that no signature names. It is used for a vector without keys, because pins may not be empty. */
const NO_KEY: Jwk = { kid: 'no key of this vector', kty: 'OKP' };

interface HandlerState {
  nowMs: number;
  handlerFails: boolean;
  handled: boolean;
}

/**
 * Makes a memory store with the vector's clock. The store gets another name, because options refuse a memory store
 * under NODE_ENV=production, where vectors may run.
 */
function storeAt(run: HandlerState): Store {
  return { ...memoryStore({ clockOffsetMs: () => run.nowMs - Date.now() }), name: 'vectors' };
}

function authOf({ legacy }: VectorSender): Pick<Sender, 'auth'> {
  if (!legacy) return {};
  const { scheme, secret, previousSecret, header } = legacy;
  if (scheme === 'hmac') {
    return { auth: { hmac: { secret, ...(previousSecret !== undefined && { previousSecret }) } } };
  }
  return {
    auth: {
      bearer: {
        token: secret,
        ...(previousSecret !== undefined && { previousToken: previousSecret }),
        ...(header !== undefined && { header }),
      },
    },
  };
}

/** Returns a vector's sender in the form of the receiver's options. */
export function senderOf(sender: VectorSender, setup: Setup): Sender {
  const { agentUrl, keys, edition, notificationToken } = sender;
  const url = revocationUrl(setup);
  const full = setup.fullKids.length > 0;
  return {
    agentUrl,
    edition,
    pins: keys.length === 0 ? [NO_KEY] : keys,
    ...authOf(sender),
    ...(notificationToken && { notificationToken }),
    ...(url !== undefined && { revocation: { url } }),
    // The limit is set to one unexpired nonce, which `burnNonces` uses up.
    ...(full && { maxNoncesPerKey: 1 }),
  };
}

function optionsOf(setup: Setup, run: HandlerState, store: Store): ReceiverOptions {
  const { protocol, limits, contentTypes, challenge } = setup;
  const { publicUrl } = placeOf(setup.url);
  return {
    publicUrl,
    senders: setup.senders.map((sender) => senderOf(sender, setup)),
    store,
    durability: { require: 'process' },
    ...(protocol !== undefined && { protocol }),
    // No other process works on an event of a vector, so the receiver does not wait for one.
    advanced: { waitMs: 0 },
    allowLoopback: publicUrl.startsWith('http:'),
    now: () => run.nowMs,
    fetch: revocationTransport(setup),
    logger: quiet,
    handlers: {
      other: () => {
        run.handled = true;
        if (run.handlerFails) throw new Error('the vector wants the handler to fail');
      },
    },
    ...limits,
    ...(contentTypes && { contentTypes }),
    ...(challenge !== undefined && { onChallenge: () => challenge === 'accept' }),
  };
}

function eventAnswer(
  event: Outcome['event'],
): Pick<SubjectAnswer, 'reemission' | 'eventKind' | 'family' | 'warnings'> {
  if (!event) return { reemission: false, family: null, warnings: [] };
  const { reemission, kind: eventKind, warnings } = event;
  const family = event.kind === 'other' ? (event.family ?? null) : null;
  return { reemission, eventKind, family, warnings: warnings.map(({ code }) => code) };
}

function answerOf(outcome: Outcome, { handled }: HandlerState): SubjectAnswer {
  const { kind, response, code, event, sender } = outcome;
  return {
    status: response.status,
    code: code ?? null,
    kind,
    body: response.body,
    wwwAuthenticate: response.headers['WWW-Authenticate'] ?? null,
    sender: sender ?? null,
    handled,
    changed: 'changed' in outcome && outcome.changed,
    ...eventAnswer(event),
    ...('check' in outcome && outcome.check !== undefined && { check: outcome.check }),
  };
}

async function deliver(
  receiver: Receiver,
  run: HandlerState,
  request: VectorRequest,
  arrival: Arrival,
): Promise<SubjectAnswer> {
  Object.assign(run, arrival, { handled: false });
  const { requestTarget } = placeOf(request.url);
  const outcome = await receiver.verifyAndDispatch(request.body, request.headers, {
    method: request.method,
    ...(requestTarget !== undefined && { url: requestTarget }),
  });
  return answerOf(outcome, run);
}

type Verifying = Pick<ReceiverOptions, 'verification'>;

async function open(
  setup: Setup,
  engine: CryptoEngine['name'] | undefined,
  verifying: Verifying,
): Promise<OpenReceiver> {
  // The options refuse a clock whose value looks like seconds, and a vector's time may be such a value, e.g. 0. So the
  // vector's time is set after the receiver was made.
  const run: HandlerState = { nowMs: DEFAULT_NOW_MS, handlerFails: false, handled: false };
  const store = storeAt(run);
  const receiver = receiverOf(
    createReceiverContext({ ...optionsOf(setup, run, store), ...verifying }, engine),
  );
  run.nowMs = setup.nowMs;
  await receiver.ready();
  await burnNonces(store, setup);
  return {
    deliver: (request, arrival) => deliver(receiver, run, request, arrival),
    close: receiver.stop,
  };
}

/** Returns the signature base of `sig1` as the library builds it, even if the signature would not verify. */
function baseOf({ headers, method, url }: VectorRequest): string | undefined {
  const fields = headerFields(headers);
  const input = parseSignatureInput(fieldValue(fields, 'signature-input') ?? '');
  if (input.kind === 'refused') return undefined;
  try {
    const facts = { method, target: canonicalTargetUri(url), headers: fields };
    return signatureBase(input.components, facts, input.raw);
  } catch {
    return undefined;
  }
}

/**
 * Creates a `Subject` that makes `runVectors` test this library. Each vector is handled like a real delivery, by a
 * receiver with a memory store and the vector's keys and clock.
 * @param engine the crypto engine. Default: the fastest of the runtime.
 * @param verifying the receiver's option `verification`.
 * @example
 * ```ts
 * import { librarySubject, runVectors } from 'proto-webhooks/vectors';
 *
 * const results = await runVectors({ subject: librarySubject('webcrypto') });
 * console.log(results.every(({ passed }) => passed));
 * ```
 */
export function librarySubject(engine?: CryptoEngine['name'], verifying: Verifying = {}): Required<Subject> {
  return {
    open: (setup) => open(setup, engine, verifying),
    signatureBase: baseOf,
    targetUri: canonicalTargetUri,
    extract: (payload) => ({ format: detectFormat(payload), data: extractData(payload) }),
    answerData,
    answerError,
    discover,
    takesSecret,
  };
}
