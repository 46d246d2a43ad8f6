// Serves the files of the page with its security headers (dev.md §5.1). dev.ts calls it.
import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';

/** The headers of every file of the page (dev.md §5.1). */
const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  // Whoever opened the page, or is opened by it, has no hold on its window.
  'Cross-Origin-Opener-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
} as const;

/** The files of the page: nothing else is read from the package. */
const FILES: Readonly<Record<string, readonly [file: string, type: string]>> = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/page.js': ['page.js', 'text/javascript; charset=utf-8'],
  '/page.css': ['page.css', 'text/css; charset=utf-8'],
};

/** The path that browsers ask for by themselves: the page has no icon. */
const ICON = '/favicon.ico';

/** True if the path is one of the page's. */
export const isOfPage = (path: string): boolean => path === ICON || Object.hasOwn(FILES, path);

/** Answers with a file of the page. @param folder the place where the package has them. */
export async function sendPage(path: string, folder: URL, response: ServerResponse): Promise<void> {
  if (path === ICON) {
    response.writeHead(204, HEADERS).end();
    return;
  }
  const [file, type] = FILES[path] ?? ['', ''];
  const bytes = await readFile(new URL(file, folder)).catch(() => undefined);
  if (!bytes) {
    response.writeHead(404, { ...HEADERS, 'Content-Type': 'text/plain; charset=utf-8' });
    response.end('The page is not in this build of proto-webhooks. The API works all the same.\n');
    return;
  }
  response.writeHead(200, { ...HEADERS, 'Content-Type': type });
  response.end(bytes);
}
