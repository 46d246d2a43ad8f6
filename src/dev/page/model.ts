// Defines the state of the page, and applies events to it. The functions are pure and need no browser. use-model.ts
// calls them, and views take texts and verdicts from here.
import type { CallEvent, DeliveryRow, DevEvents, DevState, HookEvent, ScenarioRun } from '../wire.ts';
import { visibleText } from './visible.ts';

/** The state of the page, as read from dev's API. `withEvent` applies the API's events to it. */
export interface Model {
  readonly dev: DevState;
  /** The rows of the list, newest first. */
  readonly rows: readonly DeliveryRow[];
  /** The parameter `before` of the request for older rows. Undefined if there are none. */
  readonly before: number | undefined;
  /** The buyer's tool calls, newest first. */
  readonly calls: readonly CallEvent[];
  /** The last alarm that is about none of the deliveries. Undefined once the user has dismissed it. */
  readonly alarm: HookEvent | undefined;
  /** The latest news as text, for screen readers. */
  readonly said: string;
}

const MOST_ROWS = 1_000;
const MOST_CALLS = 50;
const MOST_RUNS = 50;

export function withRows(
  rows: readonly DeliveryRow[],
  added: readonly DeliveryRow[],
): readonly DeliveryRow[] {
  const byId = new Map([...rows, ...added].map((row) => [row.id, row]));
  return [...byId.values()].toSorted((a, b) => b.id - a.id).slice(0, MOST_ROWS);
}

const withRun = (runs: readonly ScenarioRun[], run: ScenarioRun): readonly ScenarioRun[] =>
  [run, ...runs.filter((other) => other.run !== run.run)]
    .toSorted((a, b) => b.run - a.run)
    .slice(0, MOST_RUNS);

/** The verdict on an answer, which decides the colour and the text of the row. */
export type Verdict = 'waiting' | 'expected' | 'unexpected' | 'none';

export function verdictOf({ state, asExpected }: DeliveryRow): Verdict {
  if (state === 'captured') return 'none';
  if (state === 'sending') return 'waiting';
  return asExpected === true ? 'expected' : 'unexpected';
}

/** Describes the answer in words. The text is untrusted, so it must be shown through `Text` or `visibleText`. */
export const answerWords = ({ status, state, code }: DeliveryRow): string => {
  const words = { sending: 'no answer yet', unanswered: 'no answer', captured: 'captured', answered: '' };
  return [status ?? words[state], code].filter((word) => word !== undefined).join(' ');
};

/** Texts for the word that a hook reported about an accepted delivery whose handler did not simply succeed. */
const TOLD_WORDS: Readonly<Record<string, string>> = {
  duplicate: 'A duplicate: the event was here before, and its handler does not run again.',
  stale: 'Stale: its task is further by now, and the handler does not run.',
  dead: 'DEAD: the event is kept with its body until you redrive or discard it.',
  failed: 'The handler failed. The event is tried again.',
};

/**
 * Returns the reason for a delivery's outcome: the cause that `explain` found, else the advice, else what became of the
 * event.
 */
export const causeWords = ({ cause, next, told = '' }: DeliveryRow): string | undefined =>
  cause?.says || next || (Object.hasOwn(TOLD_WORDS, told) ? TOLD_WORDS[told] : undefined);

function rowSaid(row: DeliveryRow): string {
  const verdict = { waiting: 'sent', expected: 'as expected', unexpected: 'not expected', none: 'taken in' };
  const cause = verdictOf(row) === 'expected' ? undefined : causeWords(row);
  const said = `Delivery ${row.id}, ${row.what}: ${answerWords(row)}, ${verdict[verdictOf(row)]}.`;
  return visibleText(cause === undefined ? said : `${said} ${cause}`);
}

/** The name of an event that changes the model. After the event `gap` the page reads everything again instead. */
export type EventName = Exclude<keyof DevEvents, 'gap'>;

const withRow = (model: Model, row: DeliveryRow): Model => ({
  ...model,
  rows: withRows(model.rows, [row]),
  said: row.state === 'sending' ? model.said : rowSaid(row),
});

const withReceiver = (model: Model, receiver: DevState['receiver']): Model => ({
  ...model,
  dev: { ...model.dev, receiver, ...(receiver.state === 'down' && { hookHeard: false }) },
  said: receiver.state === 'up' ? 'The receiver answers.' : 'The receiver is away.',
});

function withHook(model: Model, event: HookEvent): Model {
  const isStray = event.told.hook === 'alarm' && event.delivery === undefined;
  return {
    ...model,
    dev: { ...model.dev, hookHeard: true },
    ...(isStray && { alarm: event, said: visibleText(`Alarm of the receiver: ${event.told.code}.`) }),
  };
}

const APPLY: { readonly [N in EventName]: (model: Model, data: DevEvents[N]) => Model } = {
  delivery: withRow,
  receiver: withReceiver,
  scenario: (model, run) => ({
    ...model,
    dev: { ...model.dev, scenarios: withRun(model.dev.scenarios, run) },
  }),
  hook: withHook,
  call: (model, call) => ({ ...model, calls: [call, ...model.calls].slice(0, MOST_CALLS) }),
};

/** True if the page knows the event. A newer dev may send other events, which the page ignores. */
export const isEventName = (name: string): name is EventName => Object.hasOwn(APPLY, name);

export const withEvent = <N extends EventName>(model: Model, name: N, data: DevEvents[N]): Model =>
  APPLY[name](model, data);

/** True if a delivery without a mistake was accepted, i.e. the receiver is set up for at least one scheme. */
export const wasReceivedWell = (rows: readonly DeliveryRow[]): boolean =>
  rows.some(
    ({ status = 0, asExpected, mistake }) =>
      mistake === undefined && asExpected === true && status >= 200 && status < 300,
  );
