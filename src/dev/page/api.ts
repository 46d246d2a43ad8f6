// Sends the page's requests to dev's API, with the token (dev.md §4.2). door.tsx makes the client, and the page's views
// and hooks use it.
import type { DevError } from '../wire.ts';

/** The error of a request to the API, with the API's error code. The code is `unreachable` if dev did not answer. */
export interface Refused {
  readonly code: string;
  readonly message: string;
}

const refused = (code: string, message: string): Error & Refused =>
  Object.assign(new Error(message), { code });

/** Returns the error code of a failed request to the API; empty if the error has none. */
export const codeOf = (error: unknown): string => (error as Partial<Refused>).code ?? '';

/** The client of dev's API (docs/spec/dev.md §4.2). Each method rejects with an error that is `Refused`. */
export interface Api {
  readonly get: <T>(path: string) => Promise<T>;
  readonly post: <T>(path: string, body: object) => Promise<T>;
  /** Opens the stream of server-sent events. The body of the response does not end. */
  readonly events: (lastId: string | undefined, signal: AbortSignal) => Promise<Response>;
}

const UNREACHABLE = 'proto-webhooks dev does not answer. Is it still running in its terminal?';

async function refusal(response: Response): Promise<Error & Refused> {
  try {
    const { error } = (await response.json()) as DevError;
    return refused(error.code, error.message);
  } catch {
    return refused('unreadable', `The API answered ${response.status}, and not in its own words.`);
  }
}

export function createApi(token: string): Api {
  const request = async (
    path: string,
    init: RequestInit,
    given: Readonly<Record<string, string>>,
  ): Promise<Response> => {
    const headers = { ...given, authorization: `Bearer ${token}` };
    let response: Response;
    try {
      response = await fetch(`/api/${path}`, { ...init, headers, cache: 'no-store' });
    } catch {
      throw refused('unreachable', UNREACHABLE);
    }
    if (!response.ok) throw await refusal(response);
    return response;
  };
  const answered = async <T>(path: string, init: RequestInit = {}, headers = {}): Promise<T> => {
    const response = await request(path, init, headers);
    try {
      return (await response.json()) as T;
    } catch {
      throw refused('unreachable', UNREACHABLE);
    }
  };
  return {
    get: async (path) => answered(path),
    post: async (path, body) =>
      answered(path, { method: 'POST', body: JSON.stringify(body) }, { 'content-type': 'application/json' }),
    events: async (lastId, signal) =>
      request('events', { signal }, lastId === undefined ? {} : { 'last-event-id': lastId }),
  };
}
