// Asks for the token of dev's API if the address has none or dev refuses it. Otherwise shows the page (dev.md §5.1).
// page.tsx renders it.
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { createApi } from './api.ts';
import { App } from './app.tsx';
import { keepToken, takeToken } from './token.ts';

/** Asks the user for the token. `isRefused`: dev has refused a token, else the address had none. */
function AskToken({ isRefused, onToken }: { isRefused: boolean; onToken: () => void }): JSX.Element {
  const [text, setText] = useState('');
  return (
    <main class="door">
      <h1>proto-webhooks dev</h1>
      <p>
        {isRefused
          ? 'This token is not that of the folder that dev runs with.'
          : 'This page needs the token of the folder that dev runs with.'}{' '}
        Open the address that dev has printed in its terminal, or paste it here.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          keepToken(text);
          onToken();
        }}
      >
        <label class="field">
          <span>Address or token</span>
          <input
            type="text"
            required
            autocomplete="off"
            spellcheck={false}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary">
          Open
        </button>
      </form>
    </main>
  );
}

/** Shows the page, or asks for the token if it is missing or refused. */
export function Door(): JSX.Element {
  const [token, setToken] = useState(takeToken);
  const [isRefused, setRefused] = useState(false);
  const api = useMemo(() => (token === undefined ? undefined : createApi(token)), [token]);
  const again = (): void => {
    setRefused(false);
    setToken(takeToken());
  };
  useEffect(() => {
    const changed = (): void => {
      if (location.hash.length > 1 && !location.hash.startsWith('#/')) again();
    };
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  if (!api || isRefused) return <AskToken isRefused={isRefused} onToken={again} />;
  return <App key={token} api={api} onRefused={() => setRefused(true)} />;
}
