// Makes a sink (destination of events) from a URL: one signed POST for each event (serve.md §2.2 to §2.5). An instance
// makes it; the reader of the configuration checks its options with it.
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { ConfigError, PermanentError } from '../../index.ts';
import { CLOUD_EVENT_TYPE, cloudEvent } from './cloud-event.ts';
import { type Answer, httpTarget } from './http-exchange.ts';
import { signerOf } from './signature.ts';
import { printable, type Sink, type SinkAttempt, SinkFault } from './sink.ts';

export interface HttpSinkOptions {
  /** An http or https URL. The owner may choose loopback and private addresses. */
  readonly url: string;
  /** One or two secrets `whsec_…`, newest first. */
  readonly secrets: readonly string[];
  /** The time limit for an answer. Ms. */
  readonly timeoutMs: number;
  /** Headers that the owner adds, e.g. `authorization`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Unix ms. */
  readonly now?: (() => number) | undefined;
}

/** The largest number of characters of an answer's body in a message (serve.md §2.2). */
const MOST_SHOWN = 200;

/** Matches headers that the sink itself sets, or that belong to the connection. */
const OWN =
  /^(content-(type|length|encoding)|webhook-.*|host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect)$/i;

/**
 * Makes a sink from a URL. It sends one signed POST for each event (serve.md §2.2 to §2.5).
 * @throws ConfigError for a wrong option.
 */
export function httpSink({ url, secrets, timeoutMs, headers = {}, now = Date.now }: HttpSinkOptions): Sink {
  const parsed = urlOf(url);
  const target = httpTarget(parsed);
  const sign = signerOf(secrets);
  requireHeaders(headers);
  const common = { 'user-agent': 'proto-webhooks', ...lowerCase(headers) };
  const underWay = new Set<Promise<Answer>>();

  async function counted(exchange: Promise<Answer>): Promise<Answer> {
    underWay.add(exchange);
    try {
      return await exchange;
    } finally {
      underWay.delete(exchange);
    }
  }

  async function send(attempt: SinkAttempt): Promise<void> {
    const { id, signal } = attempt;
    const request = (isFresh: boolean) => {
      const repeated = attempt.repeated || isFresh;
      const body = Buffer.from(JSON.stringify(cloudEvent({ ...attempt, repeated })));
      const own = { 'content-type': CLOUD_EVENT_TYPE, 'content-length': String(body.length) };
      return { headers: { ...common, ...own, ...sign(id, body, now()) }, body };
    };
    judge(await counted(target.exchange({ method: 'POST', request, signal, timeoutMs })), now());
  }

  return {
    name: `${parsed.origin}${parsed.pathname}`,
    send,
    check: async (signal) => {
      await counted(
        target.exchange({ method: 'OPTIONS', request: () => ({ headers: common }), signal, timeoutMs }),
      );
    },
    close: async () => {
      await Promise.allSettled(underWay);
      target.close();
    },
  };
}

function urlOf(text: string): URL {
  const url = URL.parse(text);
  if (!url) throw new ConfigError('url: is no URL. Give one like http://127.0.0.1:3000/events.');
  return url;
}

/** Checks the headers that the owner adds. @throws ConfigError */
function requireHeaders(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    if (OWN.test(name)) throw new ConfigError(`headers: ${name} is set by the sink itself. Leave it out.`);
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch {
      throw new ConfigError(
        `headers: ${JSON.stringify(name)} cannot be sent. Names are tokens, values printable characters.`,
      );
    }
  }
}

const lowerCase = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

const isPermanent = ({ status, reject }: Answer): boolean =>
  status === 422 || reject?.trim().toLowerCase() === 'permanent';

/**
 * Turns the sink's answer into an outcome: returns if the event is done.
 * @throws PermanentError if the event becomes DEAD, SinkFault if it was not accepted (serve.md §2.5, §2.6).
 */
function judge(answer: Answer, now: number): void {
  const { status, text, retryAfter } = answer;
  if (status >= 200 && status < 300) return;
  const shown = printable(text, MOST_SHOWN);
  const words = shown === '' ? `the sink answered ${status}` : `the sink answered ${status}: ${shown}`;
  if (isPermanent(answer)) throw new PermanentError(words);
  throw new SinkFault(words, retryAfterMs(retryAfter, now));
}

/**
 * Returns the wait in `Retry-After`, which is a number of seconds or a date. Undefined for any other text, or for a
 * time in the past.
 */
function retryAfterMs(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - now;
  return ms > 0 ? ms : undefined;
}
