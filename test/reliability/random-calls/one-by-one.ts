import { expect } from 'vitest';
import type { Calls, Form } from './calls.ts';
import { isSameAnswer, timeless } from './calls.ts';
import { expectHistories } from './histories.ts';
import type { Play, Subject } from './subject.ts';
import { handleOf, inMemory, onNewStore } from './subject.ts';

interface Compared {
  readonly name: string;
  /** Histories in the short form. */
  readonly count: number;
  readonly form?: Form;
  /** Of `reached`, what the form keeps from happening. */
  readonly unreached?: readonly string[];
}

/**
 * Random calls, one after the other, on two handles of a store by turns and on memory: each answer has to be the same.
 * @throws Error if one is not, if too few histories were judged, or if they did not reach what they have to.
 */
export async function expectSameAnswers<C extends { readonly does: string }>(
  subject: Subject,
  calls: Calls<C>,
  { name, count, form = (store) => store, unreached = [] }: Compared,
): Promise<void> {
  const reached = new Set<string>();
  const isExact = subject.clock !== 'goes on';
  const compared = (answer: unknown): unknown => (isExact ? answer : timeless(answer));

  /** @returns false once the two are no more in one state, which is right. */
  async function areSame(on: Play, history: readonly C[]): Promise<boolean> {
    const memory = form(inMemory(on.clock.now));
    for (const [at, made] of history.entries()) {
      on.advance(calls.stepBefore(made));
      const expected = await calls.answerOf(memory, made);
      const given = await calls.answerOf(form(handleOf(on.handles, at)), made);
      const about = `call ${at}: ${JSON.stringify(made)}`;
      if (subject.findsOneByOne === true) {
        expect(given, about).toEqual(expected);
        await on.opened.expectKeptRight?.();
      } else if (!isSameAnswer(compared(given), compared(expected), about)) return false;
      for (const what of calls.cameTo(made, expected)) reached.add(what);
    }
    return true;
  }

  await expectHistories({
    name,
    histories: calls.histories,
    count,
    judge: (history) =>
      onNewStore(subject, async (on) => {
        const isSame = await areSame(
          on,
          history.filter(({ does }) => does !== 'list' || subject.listsExpired !== true),
        );
        await on.opened.expectKeptRight?.();
        return isSame ? 'judged' : 'given up';
      }),
  });
  const missed = calls.reached.filter((what) => !reached.has(what) && !unreached.includes(what));
  expect(missed, `${name}: of these answers the histories had none; another seed may have them`).toEqual([]);
}
