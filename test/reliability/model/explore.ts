import { hash } from 'node:crypto';

/** One thing that can happen, in the words of a trace. */
export interface Step<S> {
  readonly label: string;
  readonly state: S;
}

/** What must hold in every state, and how it was broken. */
export interface Breach<Name extends string = string> {
  readonly invariant: Name;
  readonly detail: string;
  /** Steps that lead on from the state to where it shows, where it does not show in the state itself. */
  readonly onward?: readonly string[];
}

/** A finite world: where it begins, what can happen next, what must hold. All of it pure. */
export interface Model<S, Name extends string = string> {
  readonly initial: S;
  readonly next: (state: S) => readonly Step<S>[];
  /** Equal for states that differ in names alone: everything that `next` and `check` look at. */
  readonly key: (state: S) => string;
  readonly check: (state: S) => Breach<Name> | undefined;
}

export interface Exploration<Name extends string = string> {
  readonly states: number;
  /** Steps that were taken, those to known states included. */
  readonly steps: number;
  /** Steps from the first state to the farthest one. */
  readonly depth: number;
  /** The nearest state in which something does not hold, and one of the shortest ways there. */
  readonly breach?: Breach<Name> & { readonly trace: readonly string[] };
}

/** How each state was reached first: from which one, by which of its steps. */
interface Origins {
  readonly from: number[];
  readonly by: number[];
}

/**
 * Visits every reachable state, nearest first, and stops at the first one in which something does not hold: the way
 * there is then a shortest counterexample. States are told apart by a digest of their key.
 * @throws Error for a world of more than `atMost` states: an exploration that was cut short proves nothing.
 */
export function explore<S, Name extends string>(
  model: Model<S, Name>,
  atMost = 2_000_000,
): Exploration<Name> {
  const known = new Set<string>();
  const origins: Origins = { from: [], by: [] };
  let steps = 0;
  const visit = (state: S, from: number, by: number): number | undefined => {
    const id = hash('sha1', model.key(state), 'base64');
    if (known.has(id)) return undefined;
    known.add(id);
    if (known.size > atMost) throw new Error(`The world has more than ${atMost} states: give it less.`);
    origins.by.push(by);
    return origins.from.push(from) - 1;
  };
  visit(model.initial, -1, -1);
  let level = [{ state: model.initial, at: 0 }];
  for (let depth = 0; ; depth += 1) {
    const farther: typeof level = [];
    for (const { state, at } of level) {
      const breach = model.check(state);
      if (breach) {
        const trace = [...traceTo(model, origins, at), ...(breach.onward ?? [])];
        return { states: known.size, steps, depth, breach: { ...breach, trace } };
      }
      for (const [by, { state: then }] of model.next(state).entries()) {
        steps += 1;
        const found = visit(then, at, by);
        if (found !== undefined) farther.push({ state: then, at: found });
      }
    }
    if (farther.length === 0) return { states: known.size, steps, depth };
    level = farther;
  }
}

/** Goes the way again: labels are not kept for the millions of steps that lead nowhere. */
function traceTo<S>(model: Model<S>, { from, by }: Origins, end: number): readonly string[] {
  const choices: number[] = [];
  for (let at = end; at > 0; at = from[at] ?? 0) choices.unshift(by[at] ?? 0);
  let state = model.initial;
  return choices.map((choice) => {
    const step = model.next(state)[choice];
    if (!step) throw new Error('next() is not pure: the way to a state is gone.');
    state = step.state;
    return step.label;
  });
}

/** A breach as a test's failure text: what does not hold, then the steps, numbered. */
export function told({ invariant, detail, trace }: NonNullable<Exploration['breach']>): string {
  return [
    `${invariant}: ${detail}`,
    ...trace.map((label, at) => `${String(at + 1).padStart(4)}. ${label}`),
  ].join('\n');
}
