import type { Answer, Call } from './call.ts';

/** The first parameters of `webhook_run_done`. */
const LONE = ['sender', 'key', 'caller', 'retention_ms'] as const;

export function loneEnd({ json }: Call): readonly unknown[] {
  return LONE.map((name) => json[name] ?? null);
}

/** The last parameters of `webhook_run_sets`. */
export function endParameters(calls: readonly Call[]): readonly unknown[] {
  return LONE.map((name) => (calls.length > 0 ? calls.map(({ json }) => json[name] ?? null) : null));
}

const DONE: Answer = { kind: 'done', said: {} };

/** Those whose places were said are complete; undefined: not so, and nothing was done. */
export function endAnswers(
  calls: readonly Call[],
  said: string | null | undefined,
): readonly (Answer | undefined)[] {
  const places = new Set(said?.split(' '));
  return calls.map((_, at) => (places.has(String(at + 1)) ? DONE : undefined));
}
