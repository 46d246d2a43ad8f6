// The list of deliveries, newest first, each with its verdict and cause in words (dev.md §3.1). app.tsx shows it.
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { DeliveryRow } from '../wire.ts';
import { causeWords, verdictOf } from './model.ts';
import { StatusBadge, Text, Time } from './parts.tsx';
import { hrefOf } from './route.ts';

const VERDICT_WORDS = {
  waiting: 'under way',
  expected: 'as expected',
  unexpected: 'not expected',
  none: 'not sent by dev',
} as const;

/**
 * The words by which the receiver's hooks report how a run of the handler ended. Their other words are about the answer
 * to the delivery.
 */
const OF_HANDLER = new Set(['applied', 'failed', 'dead']);

function Marks({ row, isNew }: { row: DeliveryRow; isNew: boolean }): JSX.Element {
  const { scheme, edition, mistake, resent, scenario, told } = row;
  const again = resent && `${resent.how === 'same' ? 'again' : 'anew'}: ${resent.of}`;
  const marks = [
    scheme,
    edition,
    mistake,
    again,
    scenario?.name,
    told && (OF_HANDLER.has(told) ? `handler: ${told}` : told),
  ];
  return (
    <span class="marks">
      {isNew && <span class="mark new">new</span>}
      {marks.map(
        (mark) =>
          mark && (
            <span key={mark} class="mark">
              <Text value={mark} />
            </span>
          ),
      )}
    </span>
  );
}

function Row(given: {
  readonly row: DeliveryRow;
  readonly isSelected: boolean;
  readonly isNew: boolean;
}): JSX.Element {
  const { row, isSelected, isNew } = given;
  const verdict = verdictOf(row);
  const cause = causeWords(row);
  const place = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (isSelected) place.current?.scrollIntoView({ block: 'nearest' });
  }, [isSelected]);
  return (
    <li>
      <a
        ref={place}
        class={`row ${verdict}`}
        href={hrefOf({ view: 'deliveries', id: row.id })}
        data-id={row.id}
        aria-current={isSelected ? 'true' : undefined}
      >
        <span class="line">
          <StatusBadge row={row} />
          <strong class="what">
            <Text value={row.what} />
          </strong>
          <span class="faint">
            #{row.id} <Time at={row.at} />
          </span>
        </span>
        <span class="line">
          <span class={`verdict ${verdict}`}>{VERDICT_WORDS[verdict]}</span>
          {row.code !== undefined && (
            <code>
              <Text value={row.code} />
            </code>
          )}
        </span>
        {cause !== undefined && (
          <span class="cause">
            <Text value={cause} />
          </span>
        )}
        <Marks row={row} isNew={isNew} />
      </a>
    </li>
  );
}

/** Shows the deliveries, newest first. `onOlder` loads more. */
export function List(given: {
  readonly rows: readonly DeliveryRow[];
  readonly selected: number | undefined;
  readonly before: number | undefined;
  readonly onOlder: (before: number) => Promise<void>;
}): JSX.Element {
  const { rows, selected, before, onOlder } = given;
  // Deliveries that arrive while another one is open are marked as new. So the highest number at the time of opening is
  // kept.
  const newestThen = useMemo(() => rows[0]?.id ?? 0, [selected]);
  return (
    <section class="column list" id="list" aria-labelledby="list-title">
      <h2 id="list-title">
        Deliveries <span class="faint">{rows.length}</span>
      </h2>
      {rows.length === 0 && <p class="empty">Nothing was sent yet. Send a delivery, or start a scenario.</p>}
      <ol>
        {rows.map((row) => (
          <Row
            key={row.id}
            row={row}
            isSelected={row.id === selected}
            isNew={selected !== undefined && row.id > newestThen}
          />
        ))}
      </ol>
      {before !== undefined && (
        <button type="button" class="quiet" onClick={() => void onOlder(before)}>
          Older deliveries
        </button>
      )}
    </section>
  );
}
