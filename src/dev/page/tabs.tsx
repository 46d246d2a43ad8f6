// Shows several views as tabs, with the keyboard support of the ARIA pattern for tabs. detail.tsx uses it.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

interface Tab {
  readonly id: string;
  readonly title: string;
  readonly view: () => JSX.Element;
}

/** The tab that the user chose last. The next delivery opens with this tab too. */
let lastChosen = '';

const STEPS: Readonly<Record<string, (at: number, count: number) => number>> = {
  ArrowRight: (at, count) => (at + 1) % count,
  ArrowLeft: (at, count) => (at + count - 1) % count,
  Home: () => 0,
  End: (_, count) => count - 1,
};

/** Shows one of several views, and the tabs that switch between them. */
export function Tabs(given: {
  readonly tabs: readonly Tab[];
  readonly label: string;
  /** True to begin with the first tab, whatever tab the user chose last. */
  readonly fromFirst: boolean;
}): JSX.Element {
  const { tabs, label, fromFirst } = given;
  const [chosenId, setChosenId] = useState(fromFirst ? '' : lastChosen);
  const chosen = tabs.find(({ id }) => id === chosenId) ?? tabs[0];
  const choose = (id: string): void => {
    lastChosen = id;
    setChosenId(id);
  };
  const pressed = (event: KeyboardEvent, at: number): void => {
    const next = tabs[STEPS[event.key]?.(at, tabs.length) ?? -1];
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    choose(next.id);
    document.getElementById(`tab-${next.id}`)?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label}>
        {tabs.map(({ id, title }, at) => (
          <button
            key={id}
            id={`tab-${id}`}
            type="button"
            role="tab"
            aria-selected={id === chosen?.id}
            aria-controls="tab-view"
            tabIndex={id === chosen?.id ? 0 : -1}
            onClick={() => choose(id)}
            onKeyDown={(event) => pressed(event, at)}
          >
            {title}
          </button>
        ))}
      </div>
      <div class="tab-view" id="tab-view" role="tabpanel" aria-labelledby={`tab-${chosen?.id}`} tabIndex={0}>
        {chosen?.view()}
      </div>
    </>
  );
}
