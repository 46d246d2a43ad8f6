// Calls sellers to read or change a subscription set. Each call ends before another process may reserve the set.
// Credentials that a seller repeats in an answer or an error are removed.
import { boundedCall } from '../../calls/bounded-call.ts';
import { refusedBy } from '../../calls/refused-answer.ts';
import { readJson } from '../../codec/json-reader.ts';
import { defined } from '../../codec/members.ts';
import { isOfKind, messageOf } from '../../shared/errors.ts';
import type { JsonObject } from '../answer-json.ts';
import { refusalIn } from '../answer.ts';
import { beforeDeadline } from '../call-deadline.ts';
import type { CallSeller } from '../call-seller.ts';
import { SellerError } from '../seller-error.ts';
import { invalid, readAccount, type Reading } from './account-reading.ts';
import { answeredObject } from './sync-answers.ts';

export interface CallContext {
  readonly call: CallSeller;
  /** Resolves after `ms`, or early if the signal aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** The time limit of a call, or of reading all pages of an account. It is shorter than the set's reservation. Ms. */
  readonly limitMs: number;
}

/** The context of one call: the client, the seller, and the application's abort signal. */
export interface Calling {
  readonly context: CallContext;
  readonly held: { readonly agentUrl: string };
  readonly given: { readonly signal: AbortSignal };
  /**
   * The `ref` that is passed to the client, which may choose an access token by it (calls.md §4.4). It is the `ref` of
   * the requested subscription, or of any subscription in the set.
   */
  readonly ref: string | undefined;
}

/** Reads the account's id and its subscription entries from the seller, page by page. */
export async function read(work: Calling, account: JsonObject): Promise<Reading> {
  return within(work, 'list_accounts', (signal) =>
    readAccount(async (operation, args) => {
      const raw = await called(work, operation, args, signal);
      const data = answeredObject(raw, operation);
      if (!data) throw invalid(`${operation} was answered with a task`);
      return data;
    }, account),
  );
}

export const ask = (work: Calling, operation: string, args: JsonObject): Promise<unknown> =>
  within(work, operation, (signal) => called(work, operation, args, signal));

/**
 * Calls the seller once. Credentials are removed from the answer or the error.
 * @throws the seller's error that the client's error contains, if there is one; otherwise the client's error.
 */
async function called(
  { context, held, ref }: Calling,
  operation: string,
  args: JsonObject,
  signal: AbortSignal,
): Promise<unknown> {
  let isAnswered = false;
  const secrets = secretsIn(args);
  try {
    const call = boundedCall(context.call, () => (isAnswered = true));
    const answer = await call(held.agentUrl, operation, args, {
      signal,
      ...(ref !== undefined && { ref }),
    });
    return withoutSecrets(answer, secrets);
  } catch (error) {
    throw errorWithout(refusalIn(error) ?? refusedBy(error, isAnswered) ?? error, secrets);
  }
}

/** The shortest secret that is searched for in answers. A shorter text may occur in an answer by chance. */
const LEAST_SECRET = 16;
const HIDDEN = '***';

/** Returns the credentials in a call's arguments, escaped as in a JSON text. */
function secretsIn(args: JsonObject): readonly string[] {
  const found: string[] = [];
  JSON.stringify(args, (name, value: unknown) => {
    if (name === 'credentials' && typeof value === 'string' && value.length >= LEAST_SECRET) {
      found.push(JSON.stringify(value).slice(1, -1));
    }
    return value;
  });
  return found;
}

function withoutSecrets(answer: unknown, secrets: readonly string[]): unknown {
  const text = secrets.length > 0 ? JSON.stringify(answer) : undefined;
  if (text === undefined || !secrets.some((secret) => text.includes(secret))) return answer;
  return readJson(secrets.reduce((shown, secret) => shown.replaceAll(secret, HIDDEN), text));
}

/**
 * Returns the error unchanged, unless it repeats one of the `secrets`: then an error without its message and causes.
 */
function errorWithout(error: unknown, secrets: readonly string[]): unknown {
  if (secrets.length === 0) return error;
  const ofSeller = isOfKind(error, SellerError) ? error : undefined;
  const said = JSON.stringify([messageOf(error), ofSeller?.field, ofSeller?.details]);
  if (!secrets.some((secret) => said.includes(secret))) return error;
  if (!ofSeller) return new Error(LEFT_OUT);
  const { code, recovery, retryAfterMs } = ofSeller;
  return new SellerError(code, LEFT_OUT, { recovery, ...defined({ retryAfterMs }) });
}

const LEFT_OUT = 'the text of the error repeats credentials, and is left out';

/** Runs `work` within the time limit of a call. The run ends early if the application's signal aborts. */
async function within<T>(
  { context: { sleep, limitMs: ms }, given: { signal } }: Calling,
  what: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  return beforeDeadline({ ms, reason: `${what} took over ${ms} ms.`, sleep }, signal, work);
}
