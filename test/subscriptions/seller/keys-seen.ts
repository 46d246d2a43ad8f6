import { createHash } from 'node:crypto';
import { type Args, Refused, type Reply } from './log.ts';

/** Knows requests by their keys, as the protocol has it. */
export interface KeysSeen {
  /**
   * The first answer again where the key came with the same payload, else what `run` gives. Only what was done is remembered.
   * @throws Refused
   */
  readonly once: (args: Args, run: () => Promise<Reply>) => Promise<Reply>;
  /** Forgets all of them, as a seller does after its `replay_ttl_seconds`. */
  readonly forget: () => void;
}

const KEY = /^[A-Za-z0-9_.:-]{16,255}$/;
/** No part of what a key stands for. */
const LEFT_OUT = new Set(['idempotency_key', 'context', 'governance_context']);

/** Members in order, so that the same payload is the same text. */
function canonical(value: unknown, path: readonly string[] = []): unknown {
  if (Array.isArray(value)) return value.map((one) => canonical(one, path));
  if (typeof value !== 'object' || value === null) return value;
  const isKept = (name: string): boolean =>
    !(path.length === 0 && LEFT_OUT.has(name)) &&
    !(path.at(-1) === 'authentication' && name === 'credentials');
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => isKept(name))
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, one]) => [name, canonical(one, [...path, name])]),
  );
}

const hashOf = (args: Args): string =>
  createHash('sha256')
    .update(JSON.stringify(canonical(args)))
    .digest('hex');

export function keysSeen(): KeysSeen {
  const seen = new Map<string, { readonly hash: string; reply?: Reply }>();
  return {
    forget: () => seen.clear(),
    once: async (args, run) => {
      const key = args['idempotency_key'];
      if (typeof key !== 'string' || !KEY.test(key)) {
        throw new Refused('VALIDATION_ERROR', 'idempotency_key is none', { field: 'idempotency_key' });
      }
      const hash = hashOf(args);
      const known = seen.get(key);
      if (known && known.hash !== hash) {
        throw new Refused('IDEMPOTENCY_CONFLICT', 'the key came with another request');
      }
      if (known?.reply?.kind === 'result') {
        return { kind: 'result', value: { ...known.reply.value, replayed: true } };
      }
      if (known) throw new Refused('IDEMPOTENCY_IN_FLIGHT', 'it is under way', { retry_after: 1 });
      const entry: { hash: string; reply?: Reply } = { hash };
      seen.set(key, entry);
      try {
        const reply = await run();
        if (reply.kind !== 'result') seen.delete(key);
        entry.reply = reply;
        return reply;
      } catch (error) {
        seen.delete(key);
        throw error;
      }
    },
  };
}
