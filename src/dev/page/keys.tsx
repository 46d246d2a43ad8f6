// The keyboard shortcuts of the page, and the dialog that lists them. app.tsx uses both. Shortcuts of one letter can be
// turned off, because speech input types each word as letters.
import type { JSX, RefObject } from 'preact';
import { useEffect } from 'preact/hooks';
import type { DeliveryRow } from '../wire.ts';
import { currentRoute, show } from './route.ts';
import type { Actions } from './use-actions.ts';

/** The parts of the page that keyboard shortcuts act on. */
interface KeyContext {
  readonly rows: readonly DeliveryRow[];
  readonly help: RefObject<HTMLDialogElement | null>;
  readonly actions: Actions;
}

const KEYS: readonly (readonly [keys: readonly string[], says: string])[] = [
  [['j', '↓'], 'the next delivery, which is older; the arrow if the list has the focus'],
  [['k', '↑'], 'the one before, which is newer'],
  [['s'], 'go to the form to send'],
  [['r'], 'send the shown delivery again: the same bytes'],
  [['a'], 'sign the shown delivery anew, with the same body, and send it'],
  [['Esc'], 'close what is open'],
  [['?'], 'these keys'],
];

/**
 * The key in `localStorage` under which shortcuts of one letter are turned off. Users of speech input need this,
 * because each spoken word is typed as letters.
 */
const OFF = 'proto-webhooks-dev-letters';

const areOff = (): boolean => localStorage.getItem(OFF) === 'off';

/** The dialog that lists the keyboard shortcuts. */
export function KeysHelp({ dialog }: { dialog: RefObject<HTMLDialogElement | null> }): JSX.Element {
  return (
    <dialog ref={dialog} aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <dl class="keys">
        {KEYS.map(([keys, says]) => (
          <div key={says}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{says}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={!areOff()}
          onChange={(event) => localStorage.setItem(OFF, event.currentTarget.checked ? '' : 'off')}
        />
        Keys of one letter act
      </label>
      <form method="dialog">
        <button type="submit" class="primary">
          Close
        </button>
      </form>
    </dialog>
  );
}

const rowPlace = (id: number): HTMLElement | null =>
  document.querySelector<HTMLElement>(`#list a[data-id="${id}"]`);

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches('input:not([type="radio"]), select, textarea');

function shownId(): number | undefined {
  const route = currentRoute();
  return route.view === 'deliveries' ? route.id : undefined;
}

function move({ rows }: KeyContext, by: 1 | -1): void {
  const at = rows.findIndex(({ id }) => id === shownId());
  const next = rows[at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1)];
  if (!next) return;
  show({ view: 'deliveries', id: next.id });
  rowPlace(next.id)?.focus();
}

/** Runs `act` after the next change of the view, because only an element on the screen can get the focus. */
function afterShown(act: () => void): void {
  addEventListener('hashchange', () => setTimeout(act), { once: true });
}

function close(): void {
  const id = shownId();
  if (id !== undefined) afterShown(() => rowPlace(id)?.focus());
  show({ view: 'deliveries' });
}

function goToForm(): void {
  const panel = document.querySelector<HTMLDetailsElement>('#send');
  if (!panel) return;
  const focus = (): void => {
    panel.open = true;
    panel.querySelector<HTMLElement>('input:checked')?.focus();
  };
  // If the form is visible, it gets the focus immediately. On a narrow screen an open delivery hides the form, so the
  // view must change first.
  if (panel.offsetParent !== null) return focus();
  afterShown(focus);
  show({ view: 'deliveries' });
}

function resend(context: KeyContext, how: 'same' | 'anew'): void {
  const id = shownId();
  if (id !== undefined) void context.actions.resend(id, how);
}

const ACTS: Readonly<Record<string, (context: KeyContext) => void>> = {
  j: (context) => move(context, 1),
  k: (context) => move(context, -1),
  s: goToForm,
  r: (context) => resend(context, 'same'),
  a: (context) => resend(context, 'anew'),
  Escape: close,
  '?': ({ help }) => help.current?.showModal(),
};

const ARROWS: Readonly<Record<string, 1 | -1>> = { ArrowDown: 1, ArrowUp: -1 };

/**
 * Returns the action for a pressed key, or undefined if it has none at the focused element. Arrow keys have an action
 * only in the list.
 */
function actOf({ key, target }: KeyboardEvent): ((context: KeyContext) => void) | undefined {
  if (isTyping(target) || (key.length === 1 && areOff())) return undefined;
  const arrow = ARROWS[key];
  const isInList = target instanceof HTMLElement && target.closest('#list') !== null;
  if (arrow !== undefined) return isInList ? (context) => move(context, arrow) : undefined;
  return Object.hasOwn(ACTS, key) ? ACTS[key] : undefined;
}

/** Handles keyboard shortcuts on the whole page, unless the user is typing or a dialog is open. */
export function useKeys(context: KeyContext): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || context.help.current?.open) return;
      const act = actOf(event);
      if (!act) return;
      act(context);
      event.preventDefault();
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  });
}
