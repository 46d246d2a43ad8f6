// Reads and sets the view in the fragment of the address. Every view that links to another one uses it.
import { useEffect, useState } from 'preact/hooks';

/** A view of the page, as in the fragment of the address: reloading and going back keep it. */
export type Route =
  | { readonly view: 'deliveries'; readonly id?: number }
  | { readonly view: 'captures' }
  | { readonly view: 'setup' };

/** The view that the address names now; the one that was rendered last may be older. */
export function currentRoute(): Route {
  const [, view, id] = location.hash.slice(1).split('/');
  if (view === 'captures' || view === 'setup') return { view };
  return /^\d{1,15}$/.test(id ?? '') ? { view: 'deliveries', id: Number(id) } : { view: 'deliveries' };
}

export const hrefOf = (route: Route): string =>
  route.view !== 'deliveries' || route.id === undefined ? `#/${route.view}` : `#/deliveries/${route.id}`;

export function useRoute(): Route {
  const [route, setRoute] = useState(currentRoute);
  useEffect(() => {
    const changed = (): void => setRoute(currentRoute());
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return route;
}

/** Shows a view in place of the present one, so that going back does not pass through each row that was looked at. */
export const show = (route: Route): void => location.replace(hrefOf(route));
