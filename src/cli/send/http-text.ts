import type { SignedDelivery } from '../../sender/sign.ts';

/** A delivery as a raw HTTP request, which `explain` reads again. */
export function httpText({ method, url, headers, body }: SignedDelivery): string {
  const [, host = '', target = ''] = /^[^:]+:\/\/([^/?#]*)([^#]*)/.exec(url) ?? [];
  const fields = Object.entries({ Host: host, ...headers, 'Content-Length': String(body.byteLength) });
  const head = [`${method} ${target || '/'} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`)];
  return `${head.join('\r\n')}\r\n\r\n${new TextDecoder().decode(body)}`;
}
