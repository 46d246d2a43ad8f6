// The view of one delivery: its verdict, what to do next, and tabs with all details (dev.md §3.1). app.tsx shows it.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { DeliveryFull, DeliveryRow, DevState } from '../wire.ts';
import type { Api } from './api.ts';
import { Answer, Base, Explained, Handler, Request } from './detail-tabs.tsx';
import { answerWords, verdictOf } from './model.ts';
import { bytesText, msText, StatusBadge, Text, Time } from './parts.tsx';
import { NextStep } from './next-step.tsx';
import { Tabs } from './tabs.tsx';
import { hrefOf } from './route.ts';
import type { Actions } from './use-actions.ts';

interface Given {
  readonly api: Api;
  readonly id: number;
  /**
   * The delivery's row in the list. Whenever the row changes, the delivery is read again. Undefined if the list does
   * not have it.
   */
  readonly row: DeliveryRow | undefined;
  readonly dev: DevState;
  readonly actions: Actions;
}

function useFull(api: Api, id: number, row: DeliveryRow | undefined): DeliveryFull | string | undefined {
  const [full, setFull] = useState<DeliveryFull | string>();
  useEffect(() => {
    let isCurrent = true;
    api.get<DeliveryFull>(`deliveries/${id}`).then(
      (found) => isCurrent && setFull(found),
      (error: unknown) => isCurrent && setFull((error as Error).message),
    );
    return () => {
      isCurrent = false;
    };
  }, [api, id, row]);
  return full;
}

function Verdict({ full }: { full: DeliveryFull }): JSX.Element {
  const verdict = verdictOf(full);
  const { expected, ms } = full;
  const wanted = expected && [expected.status, expected.code].filter((word) => word !== undefined).join(' ');
  const answered = `${answerWords(full)}${ms === undefined ? '' : ` after ${msText(ms)}`}`;
  return (
    <p class={`answer ${verdict}`}>
      <Text value={answered} />
      {verdict === 'expected' && ', as expected'}
      {verdict === 'unexpected' && wanted !== undefined && (
        <>
          ; expected was <Text value={wanted} />
        </>
      )}
    </p>
  );
}

function Facts({ full }: { full: DeliveryFull }): JSX.Element {
  const { scheme, edition, mistake, resent, scenario, bytes } = full;
  const facts = [
    scheme,
    edition && `edition ${edition}`,
    mistake && `mistake: ${mistake}`,
    scenario && `scenario: ${scenario.name}, run ${scenario.run}`,
    bytesText(bytes),
  ].filter((fact) => fact !== undefined && fact !== '');
  return (
    <p class="facts faint">
      #{full.id} · <Time at={full.at} /> · <Text value={facts.join(' · ')} />
      {resent && (
        <>
          {' · '}
          <a href={hrefOf({ view: 'deliveries', id: resent.of })}>
            {resent.how === 'same' ? `#${resent.of} again` : `#${resent.of} signed anew`}
          </a>
        </>
      )}
    </p>
  );
}

function Buttons({ id, actions }: { id: number; actions: Actions }): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  const resend = async (how: 'same' | 'anew'): Promise<void> => {
    if (isBusy) return;
    setBusy(true);
    await actions.resend(id, how);
    setBusy(false);
  };
  return (
    <div class="buttons" aria-busy={isBusy}>
      <button type="button" onClick={() => void resend('same')} title="The same bytes and headers: a replay">
        Send again <kbd>r</kbd>
      </button>
      <button type="button" onClick={() => void resend('anew')} title="The same body, signed now">
        Sign anew <kbd>a</kbd>
      </button>
    </div>
  );
}

function Whole({ full, dev, actions }: { full: DeliveryFull } & Pick<Given, 'dev' | 'actions'>): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // On a narrow screen this view replaces the list, and the focus is lost with it. The heading gets the focus, for
    // users of a keyboard or a screen reader.
    if (document.activeElement === document.body) heading.current?.focus();
  }, []);
  return (
    <article class="detail">
      <header>
        <StatusBadge row={full} />
        <h2 ref={heading} tabIndex={-1}>
          <Text value={full.what} />
        </h2>
        <Buttons id={full.id} actions={actions} />
      </header>
      <Verdict full={full} />
      <Facts full={full} />
      <NextStep full={full} dev={dev} />
      <Tabs
        label="The delivery"
        fromFirst={full.state === 'captured'}
        tabs={[
          { id: 'explained', title: 'Checks', view: () => <Explained full={full} /> },
          { id: 'request', title: 'Request', view: () => <Request full={full} /> },
          { id: 'base', title: 'Signature base', view: () => <Base full={full} /> },
          { id: 'answer', title: 'Answer', view: () => <Answer full={full} /> },
          { id: 'handler', title: 'Handler', view: () => <Handler full={full} dev={dev} /> },
        ]}
      />
    </article>
  );
}

/** Reads a delivery, and shows it in full. */
export function Detail({ api, id, row, dev, actions }: Given): JSX.Element {
  const full = useFull(api, id, row);
  if (full === undefined) return <p class="empty">Reading delivery {id}…</p>;
  if (typeof full === 'string') {
    return (
      <p class="empty">
        Delivery {id} cannot be shown: <Text value={full} />
      </p>
    );
  }
  return <Whole full={full} dev={dev} actions={actions} />;
}
