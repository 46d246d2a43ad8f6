interface Hash {
  update(text: string): Hash;
  digest(encoding: 'hex' | 'base64url'): string;
}

/** `node:crypto`, of which hashes are used; undefined where the runtime has none. Clients of databases run where it has. */
export function nodeCrypto(): { createHash(name: 'sha1' | 'sha256'): Hash } | undefined {
  return globalThis.process?.getBuiltinModule?.('node:crypto');
}
