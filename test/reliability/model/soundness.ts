import { hash } from 'node:crypto';
import type { Model } from './explore.ts';

/**
 * The exploration goes on from one of all the states that have one key. That is sound where each of them could go on
 * as that one does: here every state is visited in all of its forms, and those of one key have to lead to the same
 * keys, with the same things holding.
 * @param form different for states that differ in anything at all.
 * @returns keys whose states differ in what can happen next.
 */
export function differingFutures<S>(
  model: Model<S>,
  form: (state: S) => string,
): { readonly forms: number; readonly keys: number; readonly differing: readonly string[] } {
  const futures = new Map<string, string>();
  const differing = new Set<string>();
  const forms = new Set<string>();
  const open = [model.initial];
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    const id = digest(form(state));
    if (forms.has(id)) continue;
    forms.add(id);
    const next = model.next(state).map((step) => step.state);
    const key = model.key(state);
    const keys = new Set(next.map((one) => model.key(one)));
    const future = digest([model.check(state)?.invariant, ...[...keys].sort()].join('\n\n'));
    if ((futures.get(key) ?? future) !== future) differing.add(key);
    futures.set(key, future);
    open.push(...next);
  }
  return { forms: forms.size, keys: futures.size, differing: [...differing] };
}

function digest(text: string): string {
  return hash('sha1', text, 'base64');
}
