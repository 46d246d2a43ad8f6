// The form that sends one delivery: payload, scheme, key, protocol version, mistake (dev.md §2.1). app.tsx shows it.
// Scenarios use its scheme and version.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { DevPayload, DevScheme, DevState, MistakeChoice, SendRequest } from '../wire.ts';
import { Choice, Select, Text, useIsWide } from './parts.tsx';
import { asNewEvent, type SampleBody, sampleBody } from './sample.ts';
import type { Actions } from './use-actions.ts';

type Kind = DevPayload['kind'];

/** The values of the form. Each value stays when the user chooses another kind of payload. */
export interface Chosen extends SampleBody {
  readonly kind: Kind;
  readonly transport: 'tool' | 'agent';
  /** The chosen status. Empty: the first of the list. The same holds for `report` and `family`. */
  readonly status: string;
  readonly report: string;
  readonly family: string;
  readonly scheme: DevScheme;
  readonly key: 'ed25519' | 'p256';
  readonly edition: string;
  readonly mistake: string;
}

export type Choose = (change: Partial<Chosen>) => void;

const FIRST: Chosen = {
  kind: 'task',
  transport: 'tool',
  status: 'completed',
  report: '',
  family: '',
  ...sampleBody(),
  scheme: 'signature',
  key: 'ed25519',
  edition: '',
  mistake: '',
};

export function useChosen(): readonly [Chosen, Choose] {
  const [chosen, setChosen] = useState(FIRST);
  return [chosen, (change) => setChosen((before) => ({ ...before, ...change }))];
}

const KIND_WORDS: Readonly<Record<Kind, string>> = {
  task: 'Task',
  report: 'Report',
  family: 'Notification',
  challenge: 'Proof of control',
  body: 'Own body',
};

const KINDS = Object.keys(KIND_WORDS) as readonly Kind[];

interface Part {
  readonly choices: DevState['choices'];
  readonly chosen: Chosen;
  readonly choose: Choose;
}

const one = <T extends string>(values: readonly T[], value: string): T =>
  values.find((known) => known === value) ?? (values[0] as T);

/** Returns the chosen protocol version, or the newest if none is chosen. */
export const editionOf = (
  { editions }: DevState['choices'],
  { edition }: Chosen,
): (typeof editions)[number] =>
  editions.find((known) => known === edition) ?? (editions.at(-1) as (typeof editions)[number]);

const PAYLOADS: { readonly [K in Kind]: (choices: DevState['choices'], chosen: Chosen) => DevPayload } = {
  task: ({ statuses }, { transport, status }) => ({ kind: 'task', transport, status: one(statuses, status) }),
  report: ({ reports }, { report }) => ({ kind: 'report', type: one(reports, report) }),
  family: ({ families }, { family }) => ({ kind: 'family', name: one(families, family) }),
  challenge: () => ({ kind: 'challenge' }),
  body: (_, { text }) => ({ kind: 'body', text }),
};

function PayloadFields({ choices, chosen, choose }: Part): JSX.Element | null {
  const { statuses, transports, reports, families } = choices;
  switch (chosen.kind) {
    case 'task':
      return (
        <>
          <Select
            label="Status"
            values={statuses}
            value={one(statuses, chosen.status)}
            onChange={(status) => choose({ status })}
          />
          <Choice
            name="transport"
            label="Transport"
            values={transports}
            value={chosen.transport}
            onChange={(transport) => choose({ transport })}
          />
        </>
      );
    case 'report':
      return (
        <Select
          label="Type of report"
          values={reports}
          value={one(reports, chosen.report)}
          onChange={(report) => choose({ report })}
        />
      );
    case 'family':
      return (
        <Select
          label="Family"
          values={families}
          value={one(families, chosen.family)}
          onChange={(family) => choose({ family })}
        />
      );
    case 'body':
      return (
        <label class="field">
          <span>Body</span>
          <textarea
            rows={8}
            spellcheck={false}
            value={chosen.text}
            onInput={(event) => choose({ text: event.currentTarget.value })}
          />
        </label>
      );
    case 'challenge':
      return null;
  }
}

const isFound = ({ name, sends, code = '' }: MistakeChoice, words: readonly string[]): boolean => {
  const text = `${name} ${sends} ${code}`.toLowerCase();
  return words.every((word) => text.includes(word));
};

function Mistake({
  value,
  mistake,
  choose,
}: {
  value: string;
  mistake: MistakeChoice;
  choose: Choose;
}): JSX.Element {
  const { name, sends, status, code } = mistake;
  return (
    <label class="mistake">
      <input
        type="radio"
        name="mistake"
        checked={value === name}
        onChange={() => choose({ mistake: name })}
      />
      <span>
        <span class="line">
          <strong>
            <Text value={name} />
          </strong>
          <span class="badge none">{status}</span>
        </span>
        <span class="faint">
          <Text value={code === undefined ? sends : `${sends} ${code}`} />
        </span>
      </span>
    </label>
  );
}

function Mistakes({ choices, chosen, choose }: Part): JSX.Element {
  const [search, setSearch] = useState('');
  const possible = choices.mistakes.filter(({ schemes }) => schemes.includes(chosen.scheme));
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = possible.filter((mistake) => isFound(mistake, words));
  const isMade = possible.some(({ name }) => name === chosen.mistake);
  return (
    <details class="mistakes">
      <summary>
        Mistake: <strong>{isMade ? <Text value={chosen.mistake} /> : 'none'}</strong>
      </summary>
      <label class="field">
        <span>Search the mistakes</span>
        <input
          type="search"
          value={search}
          placeholder="a name, a code, a word"
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      </label>
      <fieldset>
        <legend class="sr-only">Mistake</legend>
        <label class="mistake">
          <input type="radio" name="mistake" checked={!isMade} onChange={() => choose({ mistake: '' })} />
          <span>
            <strong>none</strong>
          </span>
        </label>
        {found.map((mistake) => (
          <Mistake key={mistake.name} value={chosen.mistake} mistake={mistake} choose={choose} />
        ))}
      </fieldset>
      <p class="faint" role="status">
        {found.length} of {possible.length} mistakes
      </p>
    </details>
  );
}

function Advanced({ choices, chosen, choose }: Part): JSX.Element {
  return (
    <>
      <Choice
        name="scheme"
        label="Scheme"
        values={choices.schemes}
        value={chosen.scheme}
        words={{ hmac: 'HMAC' }}
        onChange={(scheme) => choose({ scheme })}
      />
      <div class="pair">
        {chosen.scheme === 'signature' && (
          <Select label="Key" values={choices.keys} value={chosen.key} onChange={(key) => choose({ key })} />
        )}
        <Select
          label="Edition"
          values={choices.editions}
          value={editionOf(choices, chosen)}
          onChange={(edition) => choose({ edition })}
        />
      </div>
    </>
  );
}

/** Makes the body of `POST /api/send` from the values of the form. */
function requestOf(choices: DevState['choices'], chosen: Chosen): SendRequest {
  const { kind, scheme, key, mistake } = chosen;
  const known = choices.mistakes.find(({ name }) => name === mistake);
  return {
    payload: PAYLOADS[kind](choices, chosen),
    scheme,
    ...(scheme === 'signature' && { key }),
    edition: editionOf(choices, chosen),
    ...(known?.schemes.includes(scheme) && { mistake }),
  };
}

/** Shows the form that sends one delivery (dev.md §2.1). */
export function SendPanel(given: {
  readonly dev: DevState;
  readonly chosen: Chosen;
  readonly choose: Choose;
  readonly actions: Actions;
}): JSX.Element {
  const { dev, chosen, choose, actions } = given;
  const [isBusy, setBusy] = useState(false);
  const isWide = useIsWide();
  const part = { choices: dev.choices, chosen, choose };
  const send = async (): Promise<void> => {
    if (isBusy) return;
    setBusy(true);
    if (chosen.kind === 'body') choose(asNewEvent(chosen));
    await actions.send(requestOf(dev.choices, chosen));
    setBusy(false);
  };
  return (
    <details class="panel" id="send" open={isWide}>
      <summary>
        <h2>Send a delivery</h2>
      </summary>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <Choice
          name="kind"
          label="What"
          values={KINDS}
          value={chosen.kind}
          words={KIND_WORDS}
          onChange={(kind) => choose({ kind })}
        />
        <PayloadFields {...part} />
        <Advanced {...part} />
        <Mistakes {...part} />
        <button type="submit" class="primary" aria-busy={isBusy}>
          {isBusy ? 'Sending…' : 'Send'}
        </button>
      </form>
    </details>
  );
}
