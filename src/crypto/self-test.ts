import type { CryptoEngine, Jwk } from './engine.ts';

interface KnownAnswer {
  readonly jwk: Jwk;
  readonly message: string;
  /** Standard base64. */
  readonly signature: string;
}

const KNOWN_ANSWERS: readonly KnownAnswer[] = [
  // RFC 8032 §7.1, TEST 2
  {
    jwk: { kty: 'OKP', crv: 'Ed25519', x: 'PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw' },
    message: 'r',
    signature: 'kqAJqfDUyrhyDoILX2QlQKKye1QWUD+Ps3YiI+vbadoIWsHkPhWZbkWPNhPQ8R2MOHsurrQwKu6wDSkWErsMAA==',
  },
  // RFC 6979 §A.2.5, SHA-256, "sample"
  {
    jwk: {
      kty: 'EC',
      crv: 'P-256',
      x: 'YP7UuiVanTHJYet0xjVtaMBJuJI7Yfps5mliLmDyn7Y',
      y: 'eQP-EAi4vJmkGunpVii8ZPLxsgwtfp9Rd6PClNRGIpk',
    },
    message: 'sample',
    signature: '79SLKqy2qP0RQN2c1F6B1p0sh3tWqvmRw00OqE6vNxb3yxyULWV8QdQ2x6G24p9l8+kA27mv9AZNxKsvhDrNqA==',
  },
];

/**
 * Whether the runtime really has both algorithms: a name in a namespace does not say so (FIPS builds, WebCrypto
 * before Ed25519), and an engine that lacks one would refuse honest sellers. One right answer, one wrong, for each.
 */
export async function engineWorks(engine: CryptoEngine): Promise<boolean> {
  for (const { jwk, message, signature } of KNOWN_ANSWERS) {
    const key = await engine.importKey(jwk);
    if (typeof key === 'string') return false;
    const bytes = Uint8Array.from(atob(signature), (char) => char.charCodeAt(0));
    const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
    if (!(await engine.verify(key, encode(message), bytes))) return false;
    if (await engine.verify(key, encode(`${message}!`), bytes)) return false;
  }
  return true;
}
