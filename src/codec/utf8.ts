// One for all: it keeps nothing between two texts, and to make one costs as much as to use it.
const encoder: InstanceType<typeof TextEncoder> = new TextEncoder();

/** The UTF-8 of a text; a lone surrogate becomes U+FFFD. */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}
