// Takes the token of the API from the address, and keeps it for this tab (dev.md §5.1). door.tsx calls it.

const KEPT_AS = 'proto-webhooks-dev-token';

/**
 * The token of the API: from the fragment of the address, from which it is then removed, or from this tab's session
 * (dev.md §5.1). A fragment that begins with a slash is a view of the page.
 */
export function takeToken(): string | undefined {
  const given = location.hash.slice(1);
  if (given !== '' && !given.startsWith('/')) {
    keepToken(given);
    history.replaceState(null, '', location.pathname);
  }
  return sessionStorage.getItem(KEPT_AS) ?? undefined;
}

/** Keeps a token for this tab. @param text a token, or the whole address that the terminal prints. */
export function keepToken(text: string): void {
  sessionStorage.setItem(KEPT_AS, text.slice(text.indexOf('#') + 1).trim());
}
