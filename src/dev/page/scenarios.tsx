// The panel of scenarios and of the buyer's tool calls (dev.md §2.3, §1.5). app.tsx shows it beside the form to send.
import type { JSX } from 'preact';
import type { CallEvent, DevState, Expected, ScenarioChoice, ScenarioRun, ScenarioStep } from '../wire.ts';
import { Text, Time, useIsWide } from './parts.tsx';
import { hrefOf } from './route.ts';
import { type Chosen, editionOf } from './send.tsx';
import type { Actions } from './use-actions.ts';

const RUN_WORDS = { running: 'runs', waiting: 'waits', passed: 'passed', failed: 'failed' } as const;

const withCode = ({ status, code }: Partial<Expected>): string =>
  code === undefined ? String(status ?? 'no answer') : `${status} ${code}`;

/** Returns the expected answer to a delivery, in words. If the answer was another one, puts that in front. */
const answerWords = (step: ScenarioStep): string =>
  step.ok === false ? `${withCode(step)}, expected ${withCode(step.expected)}` : withCode(step.expected);

const stepMark = (ok: boolean | undefined): string => {
  if (ok === undefined) return '…';
  return ok ? '✓' : '✕';
};

const stepWords = (ok: boolean | undefined): string => {
  if (ok === undefined) return 'not answered yet';
  return ok ? 'as expected' : 'not expected';
};

function Step({ step }: { step: ScenarioStep }): JSX.Element {
  const { sends, delivery, ok } = step;
  return (
    <li class={`run-step ${ok === undefined ? 'waiting' : ok ? 'expected' : 'unexpected'}`}>
      <span aria-hidden="true">{stepMark(ok)}</span>
      <span>
        <a href={hrefOf({ view: 'deliveries', id: delivery })}>
          <Text value={sends} />
        </a>{' '}
        <span class="faint">
          <Text value={answerWords(step)} />
          <span class="sr-only">, {stepWords(ok)}</span>
        </span>
      </span>
    </li>
  );
}

function Run({ run }: { run: ScenarioRun }): JSX.Element {
  return (
    <div class={`run ${run.state}`}>
      <p>
        <strong>{RUN_WORDS[run.state]}</strong>{' '}
        <span class="faint">
          {run.scheme} <Time at={run.startedAt} />
        </span>
      </p>
      <ol>
        {run.steps.map((step) => (
          <Step key={step.delivery} step={step} />
        ))}
      </ol>
      {run.note !== undefined && (
        <p class="cause">
          <Text value={run.note} />
        </p>
      )}
    </div>
  );
}

function Scenario(given: {
  readonly choice: ScenarioChoice;
  readonly run: ScenarioRun | undefined;
  readonly scheme: Chosen['scheme'];
  readonly onStart: (name: string) => void;
}): JSX.Element {
  const { choice, run, scheme, onStart } = given;
  const { name, says, schemes } = choice;
  const isUnderWay = run?.state === 'running' || run?.state === 'waiting';
  const isPossible = schemes.includes(scheme);
  return (
    <li class="scenario">
      <button
        type="button"
        disabled={isUnderWay || !isPossible}
        onClick={() => onStart(name)}
        aria-describedby={`scenario-${name}`}
      >
        <Text value={name} />
      </button>
      <p class="faint" id={`scenario-${name}`}>
        <Text value={says} />
        {!isPossible && ` Not by ${scheme}.`}
      </p>
      {run && <Run run={run} />}
    </li>
  );
}

function Calls({ calls }: { calls: readonly CallEvent[] }): JSX.Element | null {
  if (calls.length === 0) return null;
  return (
    <details class="panel">
      <summary>
        <h2>
          Calls of your buyer <span class="faint">{calls.length}</span>
        </h2>
      </summary>
      <ol class="calls">
        {calls.map((call) => (
          <li key={`${call.at} ${call.tool} ${call.taskId} ${call.mediaBuyId}`}>
            <strong>
              <Text value={call.tool} />
            </strong>{' '}
            <span class="faint">
              <Time at={call.at} /> {call.scheme}{' '}
              <Text value={[call.taskId, call.mediaBuyId].filter((id) => id !== undefined).join(', ')} />
            </span>
            {call.webhookUrl !== undefined && (
              <p>
                names the URL <Text value={call.webhookUrl} />, which dev does not call
              </p>
            )}
          </li>
        ))}
      </ol>
    </details>
  );
}

/** Shows the scenarios, each with its description and its last run (dev.md §2.3), and the buyer's tool calls. */
export function Scenarios(given: {
  readonly dev: DevState;
  readonly calls: readonly CallEvent[];
  readonly chosen: Chosen;
  readonly actions: Actions;
}): JSX.Element {
  const { dev, calls, chosen, actions } = given;
  const isWide = useIsWide();
  const edition = editionOf(dev.choices, chosen);
  const start = (name: string): void => void actions.start(name, { scheme: chosen.scheme, edition });
  return (
    <>
      <details class="panel" id="scenarios" open={isWide}>
        <summary>
          <h2>Scenarios</h2>
        </summary>
        <p class="faint">By the scheme and edition that are chosen above.</p>
        <ul class="scenarios">
          {dev.choices.scenarios.map((choice) => (
            <Scenario
              key={choice.name}
              choice={choice}
              run={dev.scenarios.find(({ name }) => name === choice.name)}
              scheme={chosen.scheme}
              onStart={start}
            />
          ))}
        </ul>
      </details>
      <Calls calls={calls} />
    </>
  );
}
