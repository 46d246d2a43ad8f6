/**
 * Compares the registrable domains of two host names by the public suffix list, its private part included: two customers
 * of one hosting service are strangers. The list is loaded only if the names differ, and from the package: nothing is
 * fetched.
 */
export async function sameRegistrableDomain(a: string, b: string): Promise<boolean> {
  if (a === b) return true;
  const domain = await registrableDomain(a);
  return domain !== undefined && domain === (await registrableDomain(b));
}

/** The registrable domain of a host name. Undefined for addresses, single labels and public suffixes. */
export async function registrableDomain(host: string): Promise<string | undefined> {
  const { getDomain } = await import('tldts');
  return getDomain(host, { allowPrivateDomains: true }) ?? undefined;
}
