// The tabs of one delivery: request, signature base, answer, checks, handler (dev.md §3.1). detail.tsx shows them.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { DeliveryFull, DevState, HeaderLine, ShownBytes, ShownStep, Told } from '../wire.ts';
import { indented } from './indent.ts';
import { Block, bytesText, Choice, CopyButton, msText, Paste, Text } from './parts.tsx';
import { HOOK_LINES } from './setup.tsx';

function Headers({ lines, label }: { lines: readonly HeaderLine[]; label: string }): JSX.Element {
  if (lines.length === 0) return <p class="empty">No header lines.</p>;
  return (
    <table class="headers">
      <caption>{label}</caption>
      <tbody>
        {lines.map(([name, value], at) => (
          <tr key={at}>
            <th scope="row">
              <Text value={name} />
            </th>
            <td>
              <Text value={value} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Body({ body, label }: { body: ShownBytes; label: string }): JSX.Element {
  const [form, setForm] = useState<'indented' | 'as sent'>('indented');
  const pretty = indented(body);
  if (body.bytes === 0) return <p class="empty">No body.</p>;
  const value = form === 'indented' && pretty !== undefined ? pretty : body.text;
  return (
    <section class="body">
      <h4>
        {label} <span class="faint">{bytesText(body.bytes)}</span>
        {body.encoding === 'base64' && <span class="faint"> not UTF-8: shown as base64</span>}
        {body.cut && <span class="faint"> cut: this is its beginning</span>}
      </h4>
      <div class="tools">
        {pretty !== undefined && (
          <Choice
            name={`form of ${label}`}
            label="Shown"
            values={['indented', 'as sent']}
            value={form}
            onChange={setForm}
          />
        )}
        <CopyButton value={body.text} what={label} />
      </div>
      <Block value={value} label={label} />
    </section>
  );
}

export function Request({ full }: { full: DeliveryFull }): JSX.Element {
  const { method, url, to, headers, body } = full.request;
  return (
    <>
      <p class="target">
        <strong>
          <Text value={method} />
        </strong>{' '}
        <Text value={url} />
      </p>
      {to !== undefined && to !== url && (
        <p class="faint">
          posted to <Text value={to} />
        </p>
      )}
      <Headers lines={headers} label="Header lines" />
      <Body body={body} label="Body" />
    </>
  );
}

export function Base({ full }: { full: DeliveryFull }): JSX.Element {
  if (full.signatureBase === undefined) return <p class="empty">This delivery has no signature.</p>;
  return (
    <>
      <p class="faint">
        The text that is signed: RFC 9421. A receiver that makes another text of the request refuses it.
      </p>
      <Paste value={full.signatureBase} label="Signature base" />
    </>
  );
}

const OUTCOMES = {
  success: 'accepted',
  failed: 'refused',
  timeout: 'no answer in time',
  connection_error: 'no connection, or it broke',
} as const;

export function Answer({ full: { answer, ms } }: { full: DeliveryFull }): JSX.Element {
  if (!answer) return <p class="empty">No answer yet, or none that dev has seen.</p>;
  return (
    <>
      <p class="target">
        <strong>{answer.status ?? 'No status'}</strong> {OUTCOMES[answer.outcome]}
        {ms !== undefined && `, after ${msText(ms)}`}
      </p>
      <Headers lines={answer.headers} label="Header lines" />
      <Body body={answer.body} label="Body of the answer" />
    </>
  );
}

const VERDICTS = { pass: 'passes', fail: 'fails', open: 'open' } as const;

function Step({ step }: { step: ShownStep }): JSX.Element {
  return (
    <li class={`step ${step.verdict}`}>
      <span class="verdict">{VERDICTS[step.verdict]}</span>
      <span>
        <Text value={step.title} />{' '}
        {step.code !== undefined && (
          <code>
            <Text value={step.code} />
          </code>
        )}
        {step.detail !== undefined && (
          <span class="faint">
            {' '}
            <Text value={step.detail} />
          </span>
        )}
      </span>
    </li>
  );
}

export function Explained({ full }: { full: DeliveryFull }): JSX.Element {
  const { explanation, explainError } = full;
  if (!explanation) {
    return (
      <p class="empty">
        <Text value={explainError ?? 'Not explained yet.'} />
      </p>
    );
  }
  return (
    <>
      <p class="faint">
        The checks of a receiver with the line of <code>senders</code>, in their order. Yours may answer
        otherwise: then its settings differ.
      </p>
      <ol class="steps">
        {explanation.steps.map((step) => (
          <Step key={step.id} step={step} />
        ))}
      </ol>
      {explanation.notes.map((note) => (
        <p key={note} class="faint">
          <Text value={note} />
        </p>
      ))}
    </>
  );
}

/** Describes in a line what a hook of the receiver reported, without the event. */
function tellingWords(told: Told): string {
  switch (told.hook) {
    case 'outcome':
      return [told.kind, told.state, told.status, told.code].filter((word) => word !== undefined).join(', ');
    case 'refused':
      return `refused, ${told.status}, ${told.code}: ${told.detail}`;
    case 'handled':
      return `run ${told.run} ended: ${told.state}, after ${msText(told.durationMs)}`;
    case 'alarm':
      return `${told.code}: ${told.message}`;
  }
}

const HOOKS = {
  outcome: 'onOutcome',
  refused: 'onRefused',
  handled: 'onHandled',
  alarm: 'onAlarm',
} as const;

function Telling({ told }: { told: Told }): JSX.Element {
  const error = told.hook === 'handled' ? told.error : undefined;
  return (
    <li>
      <p>
        <code>{HOOKS[told.hook]}</code> <Text value={tellingWords(told)} />
      </p>
      {told.hook === 'outcome' && told.detail !== undefined && (
        <p class="faint">
          <Text value={told.detail} />
        </p>
      )}
      {error !== undefined && <Block value={error} label="The error of the handler" />}
      {told.hook === 'outcome' && told.event !== undefined && (
        <Block value={JSON.stringify(told.event, undefined, 2)} label="What the handler got" />
      )}
    </li>
  );
}

export function Handler({ full, dev }: { full: DeliveryFull; dev: DevState }): JSX.Element {
  if (full.tellings.length > 0) {
    return (
      <ol class="tellings">
        {full.tellings.map((told, at) => (
          <Telling key={at} told={told} />
        ))}
      </ol>
    );
  }
  if (dev.hookHeard) return <p class="empty">The receiver's hook has told nothing of this delivery.</p>;
  return (
    <>
      <p>
        No hook was heard. With these lines the receiver tells dev what its handler gets, and how its run
        ends:
      </p>
      <Paste value={HOOK_LINES} label="The lines of the hook" />
    </>
  );
}
