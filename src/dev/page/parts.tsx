// The small components that views share: untrusted text, blocks, buttons, choices, times and sizes. All text from
// outside is shown through `Text` or `visibleText` (dev.md §5.2).
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { DeliveryRow } from '../wire.ts';
import { answerWords, verdictOf } from './model.ts';
import { type Piece, visiblePieces, visibleText } from './visible.ts';

/**
 * The most pieces of one text (visible parts and hidden characters) that become elements. The rest becomes one string,
 * so that a page does not have a million elements.
 */
const MOST_PIECES = 2_000;

function elementsOf(pieces: readonly Piece[]): ComponentChildren[] {
  return pieces.map(({ text, isHidden }) => (isHidden ? <span class="hidden-char">{text}</span> : text));
}

/** Shows untrusted text, with hidden characters made visible (dev.md §5.2). */
export function Text({ value, lines = false }: { value: string; lines?: boolean }): JSX.Element {
  const pieces = visiblePieces(value, lines);
  const rest = pieces.slice(MOST_PIECES).map(({ text, isHidden }) => (isHidden ? `⟨${text}⟩` : text));
  return (
    <bdi>
      {elementsOf(pieces.slice(0, MOST_PIECES))}
      {rest.join('')}
    </bdi>
  );
}

/** The characters of a long text that are shown before the user asks for the rest. */
const FIRST_CHARACTERS = 20_000;

/** Shows a text of several lines, e.g. a body, a signature base, or options to paste. */
export function Block({ value, label }: { value: string; label: string }): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const isLong = value.length > FIRST_CHARACTERS && !isWhole;
  return (
    <figure class="block" aria-label={label}>
      <pre>
        <Text value={isLong ? value.slice(0, FIRST_CHARACTERS) : value} lines />
      </pre>
      {isLong && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          Show all {value.length.toLocaleString('en')} characters
        </button>
      )}
    </figure>
  );
}

const COPIED_MS = 2_000;

export function CopyButton({ value, what }: { value: string; what: string }): JSX.Element {
  const [state, setState] = useState<'idle' | 'copied' | 'refused'>('idle');
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async (): Promise<void> => {
    const next = await navigator.clipboard.writeText(value).then(
      () => 'copied' as const,
      () => 'refused' as const,
    );
    setState(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setState('idle'), COPIED_MS);
  };
  const words = { idle: 'Copy', copied: 'Copied', refused: 'Not allowed: select it and copy' };
  return (
    <button type="button" class="quiet" onClick={() => void copy()} aria-label={`${words[state]}: ${what}`}>
      {words[state]}
    </button>
  );
}

/** Shows a text with a button that copies it. */
export function Paste({ value, label }: { value: string; label: string }): JSX.Element {
  return (
    <div class="paste">
      <Block value={value} label={label} />
      <CopyButton value={value} what={label} />
    </div>
  );
}

const TIME = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
const LONG_TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' });

export function Time({ at }: { at: number }): JSX.Element {
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={LONG_TIME.format(date)}>
      {TIME.format(date)}
    </time>
  );
}

const STATE_WORDS = { sending: '…', unanswered: 'none', captured: 'seen', answered: '?' } as const;

/** Shows the status of the answer in the colour of the verdict. */
export function StatusBadge({ row }: { row: DeliveryRow }): JSX.Element {
  return (
    <span class={`badge ${verdictOf(row)}`} title={visibleText(answerWords(row))}>
      {row.status ?? STATE_WORDS[row.state]}
    </span>
  );
}

const UNITS = ['bytes', 'kB', 'MB'] as const;

export function bytesText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} ${UNITS[0]}`;
  return bytes < 1_000_000
    ? `${(bytes / 1_000).toFixed(1)} ${UNITS[1]}`
    : `${(bytes / 1_000_000).toFixed(1)} ${UNITS[2]}`;
}

/** Formats a duration, rounded to a tenth of a millisecond. */
export const msText = (ms: number): string => `${Math.round(ms * 10) / 10} ms`;

/** True if the screen was wide enough for several columns when the component was first shown. */
export function useIsWide(): boolean {
  const [isWide] = useState(() => matchMedia('(min-width: 45rem)').matches);
  return isWide;
}

/** Lets the user choose one of few values, shown as a row of buttons. */
export function Choice<T extends string>(given: {
  readonly name: string;
  readonly label: string;
  readonly values: readonly T[];
  readonly value: T;
  readonly words?: Readonly<Partial<Record<T, string>>>;
  readonly onChange: (value: T) => void;
}): JSX.Element {
  const { name, label, values, value, words = {}, onChange } = given;
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      <div class="segments">
        {values.map((one) => (
          <label key={one}>
            <input type="radio" name={name} checked={one === value} onChange={() => onChange(one)} />
            <span>{(words as Readonly<Record<string, string>>)[one] ?? one}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** Lets the user choose one of many values, shown as a list that opens. */
export function Select<T extends string>(given: {
  readonly label: string;
  readonly values: readonly T[];
  readonly value: T;
  readonly onChange: (value: T) => void;
}): JSX.Element {
  const { label, values, value, onChange } = given;
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {values.map((one) => (
          <option key={one} value={one}>
            {visibleText(one)}
          </option>
        ))}
      </select>
    </label>
  );
}
