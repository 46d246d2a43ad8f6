import type { AgentPolicy, PlannedHook, Step, Task } from '../wire.ts';
import { type Dice, diceOf } from './random.ts';

/** What is asked of the seller, whatever the transport. */
export interface Asked {
  readonly name: string;
  readonly requestKey: string;
  readonly taskType: string;
  readonly url?: string;
  readonly operationId?: string;
  readonly context?: unknown;
}

/** How a request is treated: by the seed, the agent and the order's name. */
export interface Treatment {
  /** Requests of one key whose connection ends before anything is done, and after. */
  readonly endsBefore: number;
  readonly endsAfter: number;
  /** The error that it is answered. */
  readonly refusal?: string;
  /** Until it is answered, ms. A webhook may come before. */
  readonly answerMs: number;
  /** Whether errors and results are structured, or JSON in a text. */
  readonly isStructured: boolean;
  /** For the task, where there is one. */
  readonly dice: Dice;
}

const WITHIN_MS = 120;
const ENDS = ['completed', 'completed', 'completed', 'failed'] as const;
const ON_THE_WAY = ['working', 'input-required'] as const;

/** The dice are thrown in one order, whatever they show: the same order gets the same treatment, however often it asks. */
export function treatmentOf(seed: number, policy: AgentPolicy, asked: Asked): Treatment {
  const dice = diceOf(`${seed} ${policy.name} ${asked.name}`);
  const refusesField = dice.percent(policy.refuses ? 100 : 12);
  const refuses = dice.percent(4);
  const endsBefore = dice.percent(12) ? 1 + dice.below(2) : 0;
  const endsAfter = dice.percent(15) ? 1 + dice.below(2) : 0;
  const answerMs = dice.percent(50) ? dice.below(WITHIN_MS) : 0;
  const isStructured = dice.percent(50);
  const refusal = refuses || (refusesField && asked.url !== undefined) ? 'INVALID_REQUEST' : undefined;
  return {
    endsBefore,
    endsAfter,
    answerMs,
    isStructured,
    dice,
    ...(refusal !== undefined && { refusal }),
  };
}

/** What comes of a request. @param taskId, resultId new ones. */
export function taskOf(
  policy: AgentPolicy,
  asked: Asked,
  { dice }: Treatment,
  { taskId, resultId, now }: { readonly taskId: string; readonly resultId: string; readonly now: number },
): Task {
  const endsAtOnce = dice.percent(25);
  const steps = endsAtOnce ? [endAt(dice, now)] : stepsFrom(policy, dice, now);
  const answers = endsAtOnce ? 'end' : dice.percent(50) ? 'submitted' : 'working';
  // Against the rules: what the answer has told is told by a webhook too.
  const isTold = asked.url !== undefined && (!endsAtOnce || dice.percent(30));
  const { name, requestKey, taskType, url, operationId, context } = asked;
  return {
    agent: policy.name,
    name,
    requestKey,
    taskId,
    taskType,
    resultId,
    ...(url !== undefined && { url }),
    ...(operationId !== undefined && { operationId }),
    ...(context !== undefined && { context }),
    createdAt: now,
    answers,
    steps,
    hooks: isTold ? hooksOf(policy, dice, steps, taskId) : [],
  };
}

const endAt = (dice: Dice, at: number): Step => ({
  status: ENDS[dice.below(ENDS.length)] ?? 'completed',
  at,
});

function stepsFrom({ withinMs = WITHIN_MS }: AgentPolicy, dice: Dice, now: number): Step[] {
  const steps: Step[] = [];
  let at = now;
  for (let left = dice.below(3); left > 0; left -= 1) {
    at += 1 + dice.below(withinMs);
    steps.push({ status: ON_THE_WAY[dice.below(ON_THE_WAY.length)] ?? 'working', at });
  }
  // Now and then at once: the webhook is before the answer.
  return [...steps, endAt(dice, at + 1 + dice.below(withinMs))];
}

/** Each with a lag of its own: they come in any order. */
function hooksOf(
  { drops, withinMs = WITHIN_MS, isPatient }: AgentPolicy,
  dice: Dice,
  steps: readonly Step[],
  taskId: string,
): PlannedHook[] {
  return steps.flatMap(({ at }, step) => {
    const isDropped = dice.percent(drops);
    const hook = {
      key: `webhook-${step}-of-${taskId}`,
      step,
      at: at + dice.below(withinMs),
      copies: dice.percent(20) ? 2 : 1,
      attempts: dice.percent(5) && !isPatient ? 2 : 1_000,
      note: dice.percent(10) ? 'corrected' : 'as booked',
    };
    return isDropped ? [] : [hook];
  });
}
