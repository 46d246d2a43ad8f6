const KEPT_AS = 'proto-webhooks-dev-token';

/**
 * The token of the API: from the address's fragment, which then is removed from it, or from this tab's session (dev.md §5.1).
 * A fragment that begins with a slash is a view of the page.
 */
export function takeToken(): string | undefined {
  const given = location.hash.slice(1);
  if (given !== '' && !given.startsWith('/')) {
    keepToken(given);
    history.replaceState(null, '', location.pathname);
  }
  return sessionStorage.getItem(KEPT_AS) ?? undefined;
}

/** @param text a token, or the whole address that the terminal prints. */
export function keepToken(text: string): void {
  sessionStorage.setItem(KEPT_AS, text.slice(text.indexOf('#') + 1).trim());
}
