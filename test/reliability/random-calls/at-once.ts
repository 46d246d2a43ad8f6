import * as fc from 'fast-check';
import { expect } from 'vitest';
import type { StoreInbox, StoreRegistrations, TaskClaim } from '../../../src/stores/index.ts';
import type { Call, Form } from './calls.ts';
import { answerOf, call, capped, STEP_MS, stepBefore, timeless } from './calls.ts';
import type { Verdict } from './histories.ts';
import { expectHistories } from './histories.ts';
import type { Subject } from './subject.ts';
import { handleOf, inMemory, onNewStore } from './subject.ts';

/** In one order of members, and bodies as text: answers are compared as they are written. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (value === null || typeof value !== 'object') return value;
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, inOrder(member)]));
}

const written = (answer: unknown): string => JSON.stringify(inOrder(timeless(answer)) ?? null);

/** Calls of one turn, each with its answer and when it was made. */
interface Made {
  readonly call: Call;
  readonly answer: string;
}
interface Turn {
  readonly atMs: number;
  readonly made: readonly Made[];
}

/** Calls that are played before the search for an order is given up. */
const MOST_LOOKS = 10_000;

const LOOKS: readonly Call['does'][] = ['peek', 'inspect', 'told', 'wait'];
const NOTHING_DONE: ReadonlySet<string> = new Set(['lost', 'absent', 'other', 'over-cap', 'replayed']);

/** The call left everything as it was: where it could come first, no other place has to be tried. */
function didNothing({ call: { does }, answer }: Made): boolean {
  if (LOOKS.includes(does)) return true;
  const said: unknown = JSON.parse(answer);
  const kind = typeof said === 'string' ? said : (said as { readonly kind?: string }).kind;
  return kind !== undefined && NOTHING_DONE.has(kind);
}

type History = readonly (readonly [atMs: number, made: Made])[];

/** True if a store in memory gives the last call of a history the answer that it was given. */
async function isSoInMemory(history: History, form: Form): Promise<boolean> {
  let now = 0;
  const store = form(inMemory(() => now));
  let last = '';
  for (const [atMs, made] of history) {
    now = atMs;
    last = written(await answerOf(store, made.call));
  }
  return last === history.at(-1)?.[1].answer;
}

/**
 * The longest history found, one by one in some order within each turn, in which a store in memory answers the same.
 * Undefined where the search was given up: that says nothing.
 */
async function ordered(turns: readonly Turn[], form: Form): Promise<History | undefined> {
  let looks = 0;
  let longest: History = [];
  const follows = async (history: History, at: number, left: readonly Made[]): Promise<boolean> => {
    if (history.length > longest.length) longest = history;
    const of = turns[at];
    if (!of) return true;
    if (left.length === 0) return follows(history, at + 1, turns[at + 1]?.made ?? []);
    const atMs = of.atMs + (of.made.length - left.length) * STEP_MS;
    for (const one of left) {
      looks += 1;
      if (looks > MOST_LOOKS) return false;
      const longer: History = [...history, [atMs, one]];
      if (!(await isSoInMemory(longer, form))) continue;
      const others = left.filter((other) => other !== one);
      if (await follows(longer, at, others)) return true;
      if (didNothing(one)) return false;
    }
    return false;
  };
  await follows([], 0, turns[0]?.made ?? []);
  return looks > MOST_LOOKS ? undefined : longest;
}

/** As a batch has calls that are answered row by row: a good order to begin with. */
const byKeyId = (one: Made, other: Made): number => (one.call.nonce % 2) - (other.call.nonce % 2);

/** Leases take all that is due: of what came at once, which is older is not compared but within a task. */
const leasingAll: Form = (store) => {
  const { inbox } = store;
  if (!inbox) return store;
  const lease: StoreInbox['lease'] = async (request) => {
    const { events, ...said } = await inbox.lease({ ...request, max: 60 });
    return { ...said, events: events.toSorted((one, other) => (one.key < other.key ? -1 : 1)) };
  };
  return { ...store, inbox: { ...inbox, lease } };
};

/** The store, of names in another form: what databases and drivers quote, cut or compare in ways of their own. */
function named(odd: (name: string) => string, longestSender: number): Form {
  const oddSender = (sender: string): string => (odd(sender).length > longestSender ? sender : odd(sender));
  const of = <T extends { readonly sender: string; readonly key: string; readonly owner: string }>(
    request: T,
  ): T => ({
    ...request,
    sender: oddSender(request.sender),
    key: odd(request.key),
    owner: odd(request.owner),
  });
  const inboxOf = (inbox: StoreInbox): StoreInbox => ({
    ...inbox,
    lease: (request) => inbox.lease({ ...request, owner: odd(request.owner) }),
    inspect: (sender, key) => inbox.inspect(oddSender(sender), odd(key)),
    redrive: (sender, key) => inbox.redrive(oddSender(sender), odd(key)),
    discard: (sender, key, retentionMs) => inbox.discard(oddSender(sender), odd(key), retentionMs),
  });
  const taskOf = ({ told, ...task }: TaskClaim): TaskClaim => {
    const operation = told?.operation;
    return {
      ...task,
      id: odd(task.id),
      ...(told && { told: { ...told, ...(operation !== undefined && { operation: odd(operation) }) } }),
    };
  };
  const registrationsOf = (registrations: StoreRegistrations): StoreRegistrations => ({
    ...registrations,
    run: (sender, plan) =>
      registrations.run(oddSender(sender), (rows, now) =>
        plan(
          { ...rows, taskEnd: (id) => rows.taskEnd(odd(id)), lastTold: (id) => rows.lastTold(odd(id)) },
          now,
        ),
      ),
  });
  return (store) => ({
    ...store,
    accept: ({ event, nonce, ...request }) =>
      store.accept({
        ...request,
        acceptId: odd(request.acceptId),
        sender: oddSender(request.sender),
        ...(nonce && { nonce: { ...nonce, keyid: odd(nonce.keyid), nonce: odd(nonce.nonce) } }),
        ...(event && {
          event: {
            ...event,
            key: odd(event.key),
            ...(event.task && { task: taskOf(event.task) }),
            ...(event.notificationId !== undefined && { notificationId: odd(event.notificationId) }),
          },
        }),
      }),
    complete: (request) => store.complete(of(request)),
    fail: (request) => store.fail({ ...of(request), ...(request.error && { error: odd(request.error) }) }),
    renew: (request) => store.renew(of(request)),
    peek: (sender, key) => store.peek(oddSender(sender), odd(key)),
    ...(store.inbox && { inbox: inboxOf(store.inbox) }),
    ...(store.registrations && { registrations: registrationsOf(store.registrations) }),
  });
}

const ODD: readonly string[] = [
  ' ',
  "'; --",
  '"',
  '\\',
  '\\"},{NULL',
  '\0',
  '\ud800',
  '\u{1f4e8} \u0001',
  '\n\t\r',
  'x'.repeat(2000),
  '\udfff'.repeat(2000),
];
const odd: fc.Arbitrary<(name: string) => string> = fc.tuple(fc.constantFrom(...ODD), fc.boolean()).map(
  ([text, isFirst]) =>
    (name) =>
      isFirst ? `${text}${name}` : `${name}${text}`,
);

/** Accepts of few names, and of many: ordinary ones among others. */
const accepting: fc.Arbitrary<Call> = fc
  .tuple(call, fc.nat(20), fc.boolean())
  .map(([made, key, few]) => ({ ...made, does: 'accept', ...(!few && { accept: key, key, nonce: key }) }));

/** What ends a lease, or goes on with it, mostly of the accept that may have won. */
const settling: fc.Arbitrary<Call> = fc
  .tuple(
    accepting,
    fc.constantFrom<Call['does']>('complete', 'complete', 'complete', 'fail', 'renew', 'discard', 'redrive'),
  )
  .map(([made, does]) => ({ ...made, does }));

const any = fc.oneof(accepting, settling, call).filter(({ does }) => does !== 'lease' && does !== 'list');

const unlimited = capped(1_000_000_000);

/**
 * Without a notification id where there is a task: whose came first would be seen by that, and what comes in one commit is
 * not leased in that order within a task, but by the names of the rows.
 */
const orderless = (made: Call): Call => (made.task > 0 ? { ...made, flags: made.flags & ~16 } : made);

/** Calls that are made at once, where the subject says nothing else: every order of them may have to be tried. */
const MOST_AT_ONCE = 6;

/** Calls that are made at once. Leases are not among them: they pass over what somebody else has just in hand. */
function turnOf(most: number): fc.Arbitrary<readonly Call[]> {
  const several = (calls: fc.Arbitrary<Call>) => fc.array(calls, { minLength: 2, maxLength: most });
  return fc
    .oneof(
      several(accepting),
      several(settling),
      several(any),
      call.filter(({ does }) => does !== 'list').map((made) => [made]),
    )
    .map((calls) => calls.map(orderless));
}

/** A history on a store by so many of its handles; @returns its answers, turn by turn. */
function playTurns(
  subject: Subject,
  turns: readonly (readonly Call[])[],
  form: Form,
  processes: number,
): Promise<readonly Turn[]> {
  return onNewStore(subject, async ({ handles, clock, advance, opened }) => {
    const stores = handles.slice(0, processes).map(form);
    const told: Turn[] = [];
    for (const calls of turns) {
      advance(Math.max(...calls.map(stepBefore)));
      const atMs = clock.now();
      const answers = await Promise.all(calls.map((made, at) => answerOf(handleOf(stores, at), made)));
      const made = calls.map((one, at) => ({ call: one, answer: written(answers[at]) }));
      told.push({ atMs, made: made.toSorted(byKeyId) });
      advance(calls.length * STEP_MS);
    }
    await opened.expectKeptRight?.();
    return told;
  });
}

/** @throws Error for turns that no order of their calls explains. */
async function judged(told: readonly Turn[], form: Form): Promise<Verdict> {
  const longest = await ordered(told, form);
  if (!longest) return 'given up';
  const found = longest.map(([, made]) => made);
  const unexplained = told.flatMap(({ made }) => made).filter((made) => !found.includes(made));
  expect(unexplained, JSON.stringify(found, undefined, 1)).toEqual([]);
  return 'judged';
}

/** Where calls that come at once are made, far from the caps, which they may exceed together: on how many handles. */
export const AT_ONCE: readonly (readonly [where: string, form: Form, processes: number])[] = [
  ['of one process', unlimited, 1],
  ['of two', unlimited, 2],
];

/**
 * Random calls that come at once, a few at a time: some order of them has to give the same answers in memory, one by one.
 * @param count histories in the short form.
 */
export async function expectSomeOrder(
  subject: Subject,
  { name, count, form, processes }: { name: string; count: number; form: Form; processes: number },
): Promise<void> {
  await expectHistories({
    name,
    histories: fc.tuple(
      fc.array(turnOf(subject.mostAtOnce ?? MOST_AT_ONCE), { minLength: 1, maxLength: 12, size: 'max' }),
      odd,
      fc.boolean(),
    ),
    count,
    judge: async ([turns, name, isOdd]) => {
      const { longestSender = Infinity } = subject;
      const whole: Form = (store) =>
        leasingAll(isOdd ? named(name, longestSender)(form(store)) : form(store));
      return judged(await playTurns(subject, turns, whole, processes), whole);
    },
  });
}
