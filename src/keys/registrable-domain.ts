// Computes registrable domains by the public suffix list. The list is part of an npm package, which is loaded when it
// is needed.
// Called for brand.json of another domain and for redirects of adagents.json (verification.md §5.1, §5.10).

/**
 * True if two host names have the same registrable domain by the public suffix list. The list's private part counts
 * too, because two customers of one hosting service are strangers. The list is loaded only if the names differ, and
 * nothing is fetched.
 */
export async function sameRegistrableDomain(a: string, b: string): Promise<boolean> {
  if (a === b) return true;
  const domain = await registrableDomain(a);
  return domain !== undefined && domain === (await registrableDomain(b));
}

/** Returns the registrable domain of a host name. Undefined for addresses, single labels and public suffixes. */
export async function registrableDomain(host: string): Promise<string | undefined> {
  const { getDomain } = await import('tldts');
  return getDomain(host, { allowPrivateDomains: true }) ?? undefined;
}
