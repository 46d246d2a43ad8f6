// Takes the token of dev's API from the page's address, and keeps it for this browser tab (dev.md §5.1). door.tsx calls
// it.

const KEPT_AS = 'proto-webhooks-dev-token';

/**
 * Returns the token of dev's API, from the fragment of the address or from this tab's session storage (dev.md §5.1).
 * The token is then removed from the address. A fragment that begins with a slash names a view instead.
 */
export function takeToken(): string | undefined {
  const given = location.hash.slice(1);
  if (given !== '' && !given.startsWith('/')) {
    keepToken(given);
    history.replaceState(null, '', location.pathname);
  }
  return sessionStorage.getItem(KEPT_AS) ?? undefined;
}

/** Keeps a token for this browser tab. @param text a token, or the whole address that dev prints in the terminal. */
export function keepToken(text: string): void {
  sessionStorage.setItem(KEPT_AS, text.slice(text.indexOf('#') + 1).trim());
}
