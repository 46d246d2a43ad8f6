/** What the API refused, with its code; or `unreachable`, if dev did not answer. */
export class ApiError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
  }
}

/** The requests of docs/spec/dev.md §4.2. Each rejects with `ApiError`. */
export interface Api {
  readonly get: <T>(path: string) => Promise<T>;
  readonly post: <T>(path: string, body: object) => Promise<T>;
  /** The answer whose body is a stream of events. */
  readonly events: (lastId: string | undefined, signal: AbortSignal) => Promise<Response>;
}

const UNREACHABLE = 'proto-webhooks dev does not answer. Is it still running in its terminal?';

async function refusal(response: Response): Promise<ApiError> {
  try {
    const { error } = (await response.json()) as { readonly error: { code: string; message: string } };
    return new ApiError(error.code, error.message);
  } catch {
    return new ApiError('unreadable', `The API answered ${response.status}, and not in its own words.`);
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
      throw new ApiError('unreachable', UNREACHABLE);
    }
    if (!response.ok) throw await refusal(response);
    return response;
  };
  const answered = async <T>(path: string, init: RequestInit = {}, headers = {}): Promise<T> => {
    const response = await request(path, init, headers);
    try {
      return (await response.json()) as T;
    } catch {
      throw new ApiError('unreachable', UNREACHABLE);
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
