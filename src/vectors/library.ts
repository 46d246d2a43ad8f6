import { canonicalTargetUri } from '../auth/rfc9421/target-uri.ts';
import { parseSignatureInput } from '../auth/rfc9421/signature-input.ts';
import { signatureBase } from '../auth/rfc9421/signature-base.ts';
import type { CryptoEngine, Jwk } from '../crypto/engine.ts';
import { fieldValue, headerFields } from '../delivery.ts';
import { detectFormat, extractData } from '../events/index.ts';
import type { Receiver, ReceiverOptions } from '../options.ts';
import type { Outcome } from '../outcome.ts';
import { createParts } from '../parts.ts';
import { receiverOf } from '../receiver.ts';
import type { Sender } from '../senders.ts';
import type { Store } from '../stores/contract.ts';
import { memoryStore } from '../stores/memory.ts';
import { burnNonces } from './harness.ts';
import { placeOf } from './place.ts';
import { DEFAULT_NOW_MS } from './shapes/members.ts';
import { revocationTransport, revocationUrl } from './revocations.ts';
import type {
  Answer,
  Arrival,
  OpenReceiver,
  Setup,
  Subject,
  VectorRequest,
  VectorSender,
} from './subject.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** A key that no signature names: pins may not be empty, and a vector may have no keys. */
const NO_KEY: Jwk = { kid: 'no key of this vector', kty: 'OKP' };

interface Run {
  nowMs: number;
  handlerFails: boolean;
  handled: boolean;
}

/** The memory store on the vector's clock. Renamed: options refuse it under NODE_ENV=production, where vectors may run. */
function storeAt(run: Run): Store {
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

/** A vector's sender as options have it. */
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
    // One live nonce, which `burnNonces` takes, fills it.
    ...(full && { maxNoncesPerKey: 1 }),
  };
}

function optionsOf(setup: Setup, run: Run, store: Store): ReceiverOptions {
  const { protocol, limits, contentTypes, challenge } = setup;
  const { publicUrl } = placeOf(setup.url);
  return {
    publicUrl,
    senders: setup.senders.map((sender) => senderOf(sender, setup)),
    store,
    requireDurability: 'process',
    protocol,
    // Nobody else works on an event of a vector, so that there is nothing to wait for.
    waitMs: 0,
    allowLoopback: publicUrl.startsWith('http:'),
    now: () => run.nowMs,
    transport: revocationTransport(setup),
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

function answerOf(outcome: Outcome, { handled }: Run): Answer {
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
    reemission: event?.reemission ?? false,
    ...(event && { eventKind: event.kind }),
    family: (event?.kind === 'other' ? event.family : undefined) ?? null,
    warnings: event?.warnings.map((warning) => warning.code) ?? [],
    ...('check' in outcome && outcome.check !== undefined && { check: outcome.check }),
  };
}

async function deliver(
  receiver: Receiver,
  run: Run,
  request: VectorRequest,
  arrival: Arrival,
): Promise<Answer> {
  Object.assign(run, arrival, { handled: false });
  const { requestTarget } = placeOf(request.url);
  const outcome = await receiver.verifyAndDispatch(request.body, request.headers, {
    method: request.method,
    ...(requestTarget !== undefined && { url: requestTarget }),
  });
  return answerOf(outcome, run);
}

type Verifying = Pick<ReceiverOptions, 'verification' | 'sodium'>;

async function open(
  setup: Setup,
  engine: CryptoEngine['name'] | undefined,
  verifying: Verifying,
): Promise<OpenReceiver> {
  // Options refuse a clock that reads as seconds, which a vector's may: 0, for one.
  const run: Run = { nowMs: DEFAULT_NOW_MS, handlerFails: false, handled: false };
  const store = storeAt(run);
  const receiver = receiverOf(createParts({ ...optionsOf(setup, run, store), ...verifying }, engine));
  run.nowMs = setup.nowMs;
  await receiver.ready();
  await burnNonces(store, setup);
  return {
    deliver: (request, arrival) => deliver(receiver, run, request, arrival),
    close: receiver.stop,
  };
}

/** The base of `sig1` as the library builds it, whether or not it would verify. */
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
 * This library, through the way that deliveries of users take: a receiver with the vector's keys as pins, on a memory
 * store, with the vector's clock.
 * @param engine the crypto engine; the fastest of the runtime by default.
 * @param verifying the receiver's options of these names.
 */
export function librarySubject(engine?: CryptoEngine['name'], verifying: Verifying = {}): Required<Subject> {
  return {
    open: (setup) => open(setup, engine, verifying),
    signatureBase: baseOf,
    targetUri: canonicalTargetUri,
    extract: (payload) => ({ format: detectFormat(payload), data: extractData(payload) }),
  };
}
