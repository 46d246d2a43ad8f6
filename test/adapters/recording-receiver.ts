import type { AdapterReceiver } from '../../src/adapters/node.ts';
import { createTickets, fieldValue, headerFields, type SenderEntry } from '../../src/for-tests.ts';
import type { HeaderFields } from '../../src/auth/rfc9421/index.ts';
import type { Outcome, Refusal, Reply, RequestInfo, Unavailability } from '../../src/index.ts';
import { declaredLength, type GuardContext, guard, respond } from '../../src/stages/for-tests.ts';
import { createHashes } from '../../src/crypto/for-tests.ts';

/** A delivery that came whole. */
export interface Handed {
  readonly rawBody: Uint8Array;
  readonly headers: HeaderFields;
  readonly request: RequestInfo;
}

export interface RecordingReceiver extends AdapterReceiver {
  readonly handed: readonly Handed[];
  readonly refused: readonly { readonly code: string; readonly detail: string }[];
  readonly faults: readonly unknown[];
}

export interface RecordingOptions {
  readonly maxBodyBytes?: number;
  readonly bodyDeadlineMs?: number;
  readonly maxBufferedBytes?: number;
  /** What it answers to a whole delivery; 200 at once by default. */
  readonly answer?: (handed: Handed) => Reply | Promise<Reply>;
}

export const OK: Reply = { status: 200, headers: {}, body: '' };

/** The door of a real receiver with nothing behind it: it writes down what adapters hand over. */
export function recordingReceiver(options: RecordingOptions = {}): RecordingReceiver {
  const {
    maxBodyBytes = 64,
    bodyDeadlineMs = 30_000,
    maxBufferedBytes = 1_000_000,
    answer = () => OK,
  } = options;
  const context: GuardContext = {
    config: { maxBodyBytes, contentTypes: new Set() },
  };
  const handed: Handed[] = [];
  const refused: { code: string; detail: string }[] = [];
  const faults: unknown[] = [];
  const tickets = createTickets({
    config: { maxBodyBytes, maxBufferedBytes, bodyDeadlineMs, senders: { forUrl: () => [] } },
    raiseAlarm: () => {},
    now: Date.now,
  });
  const hashes = createHashes();
  const handOver = async (call: Handed): Promise<Outcome> => {
    handed.push(call);
    return { response: await answer(call) } as Outcome;
  };
  const fail = (verdict: Refusal | Unavailability): Outcome => {
    refused.push({ code: verdict.code, detail: verdict.detail });
    return { ...verdict, response: respond(verdict, 5_000) };
  };
  return {
    handed,
    refused,
    faults,
    verifyAndDispatch: async (rawBody, given, request = {}) => {
      const headers = headerFields(given);
      const guarded = guard({ method: request.method ?? 'POST', url: request.url, headers }, context);
      if (guarded.kind === 'refused') return { response: respond(guarded, 5_000) };
      return handOver({ rawBody, headers, request });
    },
    open: async (given, request = {}) => {
      const headers = headerFields(given);
      const guarded = guard({ method: request.method ?? 'POST', url: request.url, headers }, context);
      if (guarded.kind === 'refused') return { ...guarded, response: respond(guarded, 5_000) };
      const opened = tickets({
        kind: 'upload',
        // Whose it is does not matter here: one sender's.
        proof: { sender: { agentUrl: 'https://seller.example' } as SenderEntry },
        hashes,
        declared: declaredLength(headers),
        maxBytes: maxBodyBytes,
        finish: ({ rawBody }) => handOver({ rawBody, headers, request }),
        fail,
      });
      return opened.kind === 'ticket' ? opened : fail(opened);
    },
    door: {
      consumed: (detail) => fail({ kind: 'unavailable', code: 'body_consumed', detail }),
      fault: (error) => {
        faults.push(error);
        return { response: respond({ kind: 'unavailable', code: 'misconfigured', detail: '' }, 7_000) };
      },
    },
  };
}

export const text = (handed: Handed | undefined): string | undefined =>
  handed && new TextDecoder().decode(handed.rawBody);

export const header = (handed: Handed | undefined, name: string): string | undefined =>
  handed && fieldValue(handed.headers, name);
