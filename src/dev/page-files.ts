// Serves the files of dev's page with security headers (dev.md §5.1). dev.ts calls it.
import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';

/** The headers of every response for the page (dev.md §5.1). */
const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  // A page that opens this page, or is opened by it, gets no access to the window of this page.
  'Cross-Origin-Opener-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
} as const;

/** The files of the page by path. No other file of the package is served. */
const FILES: Readonly<Record<string, readonly [file: string, type: string]>> = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/page.js': ['page.js', 'text/javascript; charset=utf-8'],
  '/page.css': ['page.css', 'text/css; charset=utf-8'],
};

/** Browsers request this path by themselves. The page has no icon, so the answer is 204. */
const ICON = '/favicon.ico';

/** True if dev serves the path as a part of its page. */
export const isOfPage = (path: string): boolean => path === ICON || Object.hasOwn(FILES, path);

/** Answers with the file of the page at `path`. @param folder has the page's files. */
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
