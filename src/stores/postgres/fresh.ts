import type { Answer, Call } from './call.ts';

/**
 * Accepts that are probably the first of their events go into a batch together, set by set (`webhook_run_sets`), as long as
 * no two of them have anything in common. So do completions, each key once. The server says which ones it did not take
 * after all.
 */
export interface Sorter {
  /** Whether the call can be among them, after those before it. */
  readonly takes: (call: Call) => boolean;
}

export function sorter(): Sorter {
  const seen = new Set<string>();
  let terms: string | undefined;
  return {
    takes: ({ json, fresh, ends }) => {
      if (ends) return seen.size < seen.add(`end ${json.sender} ${String(json['key'])}`).size;
      const before = seen.size;
      let names = 0;
      for (const name of RESOURCES) {
        const value = json[name];
        if (typeof value !== 'string') continue;
        names += 1;
        seen.add(`${name} ${json.sender} ${value}`);
      }
      if (fresh === undefined || seen.size - before < names) return false;
      terms ??= fresh;
      return terms === fresh;
    },
  };
}

/** What no two fresh calls of a batch share. */
const RESOURCES = ['key', 'nonce', 'task_id', 'notification_id'] as const;

/** What is told of an accept, in the order of the parameters of both functions; bodies stand apart. */
const ACCEPT = ['key', 'caller', 'nonce', 'nonce_ms'] as const;
const EVENT = [
  'raw_hash',
  'canonical_hash',
  'task_id',
  'instant',
  'instant_ms',
  'terminal',
  'notification_id',
] as const;

/** Columns, in the order of the parameters of `webhook_run_sets`. */
const COLUMNS = [...ACCEPT, 'body_at', 'body_bytes', ...EVENT] as const;

const LONE = ['sender', 'keyid', ...ACCEPT, ...EVENT] as const;

/** In the order of `webhook_terms`: what fresh calls of a batch have in common. */
export function termsOf(json: Call['json']): string {
  const { mode, lease_ms, retention_ms, max_records, max_bytes, max_key_nonces, max_nonces } = json;
  const inbox = mode === 'inbox' ? 1 : 0;
  return `{${[inbox, lease_ms, retention_ms, max_records, max_bytes, max_key_nonces, max_nonces].join(',')}}`;
}

/** Parameters from `p_terms` on; `places` of the bodies in theirs. */
export function freshParameters(calls: readonly Call[], places: readonly number[]): readonly unknown[] {
  const groups = new Map<string, number>();
  const senders: string[] = [];
  const keyids: unknown[] = [];
  const of = calls.map(({ json }) => {
    const name = JSON.stringify([json.sender, json['keyid'] ?? null]);
    const known = groups.get(name);
    if (known !== undefined) return known;
    keyids.push(json['keyid'] ?? null);
    groups.set(name, senders.push(json.sender));
    return senders.length;
  });
  const columns = COLUMNS.map((name) => {
    if (name === 'body_at') return places.slice(0, calls.length);
    if (name === 'body_bytes') return calls.map(({ body }) => body?.length ?? 0);
    const values = calls.map(({ json }) => json[name] ?? null);
    return values.every((value) => value === null) ? null : values;
  });
  return [calls[0]?.fresh ?? null, senders, keyids, of, ...columns];
}

/** The first parameters of `webhook_run_lone`. */
export function loneParameters({ json, body, fresh }: Call): readonly unknown[] {
  return [...LONE.map((name) => json[name] ?? null), fresh, body];
}

const FIRST_BITS = '0'.charCodeAt(0);

/** What is said of them; undefined: not fresh after all, and nothing was done. */
export function freshAnswers(
  calls: readonly Call[],
  said: string | null | undefined,
): readonly (Answer | undefined)[] {
  const answers: (Answer | undefined)[] = calls.map(() => undefined);
  if (!said) return answers;
  for (const word of said.split(' ')) {
    const place = Number(word.slice(1)) - 1;
    const call = calls[place];
    if (call) answers[place] = freshAnswer(call, word.charCodeAt(0) - FIRST_BITS);
  }
  return answers;
}

/** The row-by-row answers to the first accept of an event (`webhook_insert`). */
function freshAnswer({ json }: Call, bits: number): Answer {
  const both = { changed: false, reemission: false, ahead: (bits & 2) > 0, pressure: [] };
  if (json['mode'] === 'inbox') return { kind: 'queued', said: both };
  const lease = { fence: 1, attempt: 1 };
  return { kind: 'won', said: { ...both, lease, afterTerminal: (bits & 1) > 0, afterFinal: false } };
}
