// Runs scenarios: sends their deliveries, keeps the latest runs, and reports each change (dev.md §2.3). The API starts
// them.
import { setTimeout as delay } from 'node:timers/promises';
import { isBytes } from '../shared/realms.ts';
import { messageOf } from '../shared/errors.ts';
import type { PayloadInput, SignedDelivery } from '../sender/sign.ts';
import { ApiError } from './api-error.ts';
import type { Scenario, ScenarioKit, StepDraft } from './contract.ts';
import { payloadsOf } from './payloads.ts';
import type { Draft, Sending } from './sending.ts';
import type { Seller, Sellers } from './sellers.ts';
import type { DeliveryRow, ScenarioRequest, ScenarioRun, ScenarioStep } from './wire.ts';

/**
 * The most scenario runs that are kept, though runs in progress are never dropped. `MOST_STEPS` limits the deliveries
 * of a run.
 */
const MOST_RUNS = 20;
const MOST_STEPS = 50;

/** The parts of dev that scenarios need to run. */
export interface ScenarioParts {
  readonly scenarios: Readonly<Record<string, Scenario>>;
  readonly sellers: Sellers;
  readonly sending: Sending;
  /** Returns the current time, Unix ms. */
  readonly now: () => number;
  /** Aborts when dev ends. */
  readonly signal: AbortSignal;
  /** Called with each new or changed run. */
  readonly changed: (run: ScenarioRun) => void;
}

/** Starts scenarios, and lists their latest runs (dev.md §2.3). */
export interface ScenarioRuns {
  /**
   * Starts a scenario. @returns the number of the run. @throws ApiError if the scenario is unknown, running already, or
   * not for the scheme
   */
  readonly start: (name: string, order: Required<ScenarioRequest>) => number;
  readonly list: () => readonly ScenarioRun[];
}

const isSigned = (payload: StepDraft['payload']): payload is SignedDelivery =>
  typeof payload === 'object' && 'headers' in payload && 'body' in payload && isBytes(payload.body);

const isOver = ({ state }: ScenarioRun): boolean => state === 'passed' || state === 'failed';

/** Makes a `ScenarioRuns` that has no runs yet. */
export function createScenarioRuns(parts: ScenarioParts): ScenarioRuns {
  const { scenarios, sellers, sending, now, signal, changed } = parts;
  const runs = new Map<number, ScenarioRun>();
  let last = 0;

  const change = (run: number, members: Partial<ScenarioRun>): void => {
    const before = runs.get(run);
    if (!before) return;
    const after = { ...before, ...members };
    runs.set(run, after);
    changed(after);
  };

  /** Sends one delivery of a run. @returns the delivery's list row, once the receiver has answered */
  async function sendStep(
    run: number,
    seller: Seller,
    draft: StepDraft,
    edition: Draft['row'],
  ): Promise<DeliveryRow> {
    const { sends, expected, what, payload, key, signed } = draft;
    const steps = (): readonly ScenarioStep[] => runs.get(run)?.steps ?? [];
    if (steps().length >= MOST_STEPS) throw new Error(`It has sent ${MOST_STEPS} deliveries.`);
    const { name = '' } = runs.get(run) ?? {};
    const common = {
      seller,
      what,
      expected,
      row: { ...edition, scenario: { name, run } },
      // The delivery is listed before its answer comes, so that concurrent deliveries stand in the order of sending.
      added: (delivery: number): void => change(run, { steps: [...steps(), { sends, expected, delivery }] }),
    };
    const row = isSigned(payload)
      ? await sending.sendAgain(payload, common)
      : await sending.sendDraft({ ...common, payload, ...(key && { key }), ...(signed && { signed }) });
    const { status, code } = row;
    const answered = {
      ok: row.asExpected === true,
      ...(status !== undefined && { status }),
      ...(code !== undefined && { code }),
    };
    change(run, { steps: steps().map((one) => (one.delivery === row.id ? { ...one, ...answered } : one)) });
    return row;
  }

  async function play(run: number, scenario: Scenario, order: Required<ScenarioRequest>): Promise<void> {
    const seller = sellers.byScheme[order.scheme];
    let wrong = 0;
    const kit: ScenarioKit = {
      ...order,
      seller,
      auth: seller.auth,
      payloads: payloadsOf(order.edition, now),
      now,
      signal,
      send: async (draft) => {
        const row = await sendStep(run, seller, draft, { edition: order.edition });
        if (row.asExpected !== true && draft.mayFail !== true) wrong += 1;
        return row;
      },
      sign: (payload: PayloadInput) => sending.make({ seller, payload, what: '' }),
      addKey: seller.addKey,
      sleep: (ms, own) => delay(ms, undefined, { signal: own ? AbortSignal.any([own, signal]) : signal }),
      waiting: (note) => change(run, note === undefined ? { state: 'running' } : { state: 'waiting', note }),
    };
    try {
      await scenario.run(kit);
      const note = wrong === 0 ? {} : { note: `${wrong} of its answers are not the expected ones.` };
      change(run, { state: wrong === 0 ? 'passed' : 'failed', ...note });
    } catch (error) {
      change(run, { state: 'failed', note: signal.aborted ? 'Dev has ended.' : messageOf(error) });
    }
  }

  return {
    start(name, order) {
      const scenario = Object.hasOwn(scenarios, name) ? scenarios[name] : undefined;
      if (!scenario) {
        throw new ApiError(
          'unknown_scenario',
          `No such scenario. Expected one of ${Object.keys(scenarios).join(', ')}.`,
        );
      }
      if (!scenario.schemes.includes(order.scheme)) {
        throw new ApiError('bad_request', `scheme: ${name} is made by ${scenario.schemes.join(', ')} alone.`);
      }
      if ([...runs.values()].some((run) => run.name === name && !isOver(run))) {
        throw new ApiError('scenario_running', `${name} runs already. Wait until it has ended.`);
      }
      last += 1;
      const run: ScenarioRun = {
        run: last,
        name,
        scheme: order.scheme,
        startedAt: now(),
        state: 'running',
        steps: [],
      };
      runs.set(last, run);
      for (const [number, old] of runs) {
        if (runs.size <= MOST_RUNS) break;
        if (isOver(old)) runs.delete(number);
      }
      changed(run);
      void play(last, scenario, order);
      return last;
    },
    list: () => [...runs.values()],
  };
}
