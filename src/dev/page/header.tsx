// The header of the page: the state of the receiver and its hooks, and the links to the views (dev.md §3.3). app.tsx
// shows it.
import type { JSX } from 'preact';
import type { DevState, ReceiverState } from '../wire.ts';
import { Text, Time } from './parts.tsx';
import { hrefOf, type Route } from './route.ts';

function Receiver({ receiver, forward }: { receiver: ReceiverState; forward: string }): JSX.Element {
  const { state, since, error } = receiver;
  const words = { up: 'Receiver up', down: 'Receiver away', unknown: 'Receiver not tried yet' };
  return (
    <div class={`state ${state}`}>
      <strong>{words[state]}</strong>{' '}
      {state !== 'unknown' && (
        <span class="since">
          since <Time at={since} />
        </span>
      )}
      <span class="address">
        <Text value={forward} />
        {error !== undefined && (
          <>
            {' '}
            (<Text value={error} />)
          </>
        )}
      </span>
    </div>
  );
}

const VIEWS: readonly (readonly [Route['view'], string])[] = [
  ['deliveries', 'Deliveries'],
  ['captures', 'Captures'],
  ['setup', 'Set-up'],
];

const focusList = (): void => document.querySelector<HTMLElement>('#list a')?.focus();

/** Shows the name, the state of the receiver and its hooks, and the links to the views. */
export function Header(given: {
  readonly dev: DevState;
  readonly route: Route;
  readonly isConnected: boolean;
  readonly onHelp: () => void;
}): JSX.Element {
  const { dev, route, isConnected, onHelp } = given;
  return (
    <header class="top">
      <button type="button" class="skip" onClick={focusList}>
        Go to the deliveries
      </button>
      <h1>
        proto-webhooks <span>dev</span>
      </h1>
      <Receiver receiver={dev.receiver} forward={dev.forward} />
      <div class={`state ${dev.hookHeard ? 'up' : 'unknown'}`}>
        <strong>{dev.hookHeard ? 'Hook heard' : 'No hook heard'}</strong>
        {!dev.hookHeard && <a href={hrefOf({ view: 'setup' })}>add devHooks()</a>}
      </div>
      {!isConnected && (
        <div class="state down">
          <strong>Connection lost</strong>
        </div>
      )}
      <nav aria-label="Views">
        {VIEWS.map(([view, word]) => (
          <a key={view} href={hrefOf({ view })} aria-current={route.view === view ? 'page' : undefined}>
            {word}
          </a>
        ))}
        <button type="button" class="quiet" onClick={onHelp} aria-keyshortcuts="?">
          Keys <kbd>?</kbd>
        </button>
      </nav>
    </header>
  );
}
