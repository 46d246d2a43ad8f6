import type { DoorReceiver } from '../../src/adapters/door.ts';
import { fieldValue, headerFields, type HeaderFields } from '../../src/delivery.ts';
import type { RequestInfo } from '../../src/options.ts';
import type { Reply } from '../../src/outcome.ts';
import { protocolFor } from '../../src/protocol.ts';
import { type GuardContext, guardDeclaredLength, guardHeaders } from '../../src/stages/guard.ts';
import { respond } from '../../src/stages/respond.ts';

/** One call of `verifyAndDispatch`. */
export interface Handed {
  readonly rawBody: Uint8Array;
  readonly headers: HeaderFields;
  readonly request: RequestInfo;
}

export interface RecordingReceiver extends DoorReceiver {
  readonly handed: readonly Handed[];
  readonly refused: readonly { readonly code: string; readonly detail: string }[];
  readonly faults: readonly unknown[];
  /** Bytes that its doors hold now. */
  readonly held: () => number;
}

export interface RecordingOptions {
  readonly maxBodyBytes?: number;
  readonly bodyDeadlineMs?: number;
  readonly maxBufferedBytes?: number;
  /** What `verifyAndDispatch` answers; 200 at once by default. */
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
    protocol: protocolFor(),
    raiseAlarm: () => {},
  };
  let held = 0;
  const handed: Handed[] = [];
  const refused: { code: string; detail: string }[] = [];
  const faults: unknown[] = [];
  return {
    handed,
    refused,
    faults,
    held: () => held,
    verifyAndDispatch: async (rawBody, headers, request = {}) => {
      const call: Handed = { rawBody, headers: headerFields(headers), request };
      handed.push(call);
      return { response: await answer(call) };
    },
    door: {
      maxBodyBytes,
      bodyDeadlineMs,
      check: (headers, request) => {
        const fields = headerFields(headers);
        const refusal =
          guardHeaders(request?.method ?? 'POST', fields, context) ??
          guardDeclaredLength(fields, maxBodyBytes);
        return refusal && { response: respond(refusal, 5) };
      },
      refuse: (code, detail) => {
        refused.push({ code, detail });
        return {
          response:
            code === 'payload_too_large'
              ? respond({ kind: 'refused', code, detail }, 5)
              : respond({ kind: 'unavailable', code, detail }, 5),
        };
      },
      fault: (error) => {
        faults.push(error);
        return { response: respond({ kind: 'unavailable', code: 'misconfigured', detail: '' }, 7) };
      },
      hold: (bytes) => {
        if (held + bytes > maxBufferedBytes) return false;
        held += bytes;
        return true;
      },
      release: (bytes) => {
        held -= bytes;
      },
    },
  };
}

export const text = (handed: Handed | undefined): string | undefined =>
  handed && new TextDecoder().decode(handed.rawBody);

export const header = (handed: Handed | undefined, name: string): string | undefined =>
  handed && fieldValue(handed.headers, name);
