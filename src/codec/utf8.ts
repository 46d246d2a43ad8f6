/**
 * Node's `Buffer`, where the runtime has one: it cuts short ones from a pool, in a third of the encoder's time, and what
 * OpenSSL is then given needs no memory of its own.
 */
const pool: Pick<typeof Buffer, 'from'> | undefined = (globalThis as { readonly Buffer?: typeof Buffer })
  .Buffer;

// One for all: it keeps nothing between two texts, and to make one costs as much as to use it.
const encoder: InstanceType<typeof TextEncoder> = new TextEncoder();

/** The UTF-8 of a text; a lone surrogate becomes U+FFFD. */
export function utf8(text: string): Uint8Array {
  return pool?.from(text) ?? encoder.encode(text);
}
