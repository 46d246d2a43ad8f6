// Reads and sets the page's current view, which the fragment of the address names. Every view with links to other views
// uses it.
import { useEffect, useState } from 'preact/hooks';

/** A view of the page. The fragment of the address names it, so that reloading and going back keep the view. */
export type Route =
  | { readonly view: 'deliveries'; readonly id?: number }
  | { readonly view: 'captures' }
  | { readonly view: 'setup' };

/** Returns the view that the address names. The view on the screen may still be the previous one. */
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

/** Shows a view without a new entry in the browser's history. So going back skips the rows that were looked at. */
export const show = (route: Route): void => location.replace(hrefOf(route));
