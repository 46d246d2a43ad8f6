const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
/** `[` and `{` differ in this bit alone, and so do `]` and `}`. */
const BRACKET_BIT = 0x20;
/** Digits, commas and white space are below the brackets: one comparison sends them on. */
const LAST_BEFORE_BRACKETS = 0x5a;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** What a counter finds in a JSON text. */
export interface MemberCount {
  /** Colons outside strings: in valid JSON text each of them is a member. */
  readonly members: number;
  /** Whether the name of a member is written with a backslash. */
  readonly escapedNames: boolean;
}

/** Undefined for text with more than `most` levels of brackets or, where the counter says so, that might have them. */
export type CountMembers = (bytes: Uint8Array, most: number) => MemberCount | undefined;

/**
 * One pass over the bytes: every byte looked for is ASCII, so none occurs inside a longer UTF-8 sequence. Strings are
 * passed over in a loop of their own, here rather than in a function: that is half of the time.
 */
// oxlint-disable-next-line complexity -- one loop over every byte of a body: a call for each would be half of its time
export function countMembers(bytes: Uint8Array, most: number): MemberCount | undefined {
  const end = bytes.length;
  let members = 0;
  let escapedNames = false;
  let escaped = false;
  let level = 0;
  let at = 0;
  while (at < end) {
    let byte = bytes[at] ?? 0;
    at += 1;
    if (byte === QUOTE) {
      escaped = false;
      for (; at < end; at += 1) {
        byte = bytes[at] ?? 0;
        if (byte === QUOTE) break;
        if (byte !== BACKSLASH) continue;
        escaped = true;
        at += 1;
      }
      at += 1;
    } else if (byte === COLON) {
      members += 1;
      if (escaped) escapedNames = true;
    } else if (byte > LAST_BEFORE_BRACKETS) {
      byte |= BRACKET_BIT;
      if (byte === OPEN) {
        level += 1;
        if (level > most) return undefined;
      } else if (byte === CLOSE) level -= 1;
    }
  }
  return { members, escapedNames };
}

/** `member-count.wat`, assembled. */
export const MODULE: string =
  'AGFzbQEAAAABEQJgBXt7e3t7AX5gA39/fwF/AwMCAAEFAwEAAQYkB38BQQALfwFBAAt+AUIAC34BQgALfgFCAAt+AUIAC38BQQALBxICBm1lbW9yeQIABWNvdW50AAEKuwYCMgAgACAE/SP9ZK0gASAE/SP9ZK1CEIaEIAIgBP0j/WStQiCGIAMgBP0j/WStQjCGhIQLhQYDAX8Eewh+IAEEQEEAJABBACQBQgAkAkIAJANCACQEQgAkBUEAJAYLIABBAEEAIABrQT9x/AsAAkADQCADIABPDQEgA/0ABAAhBCAD/QAEECEFIAP9AAQgIQYgA/0ABDAhByADQcAAaiEDIAQgBSAGIAf9DCIiIiIiIiIiIiIiIiIiIiIQACEKIAQgBSAGIAf9DFxcXFxcXFxcXFxcXFxcXFwQACEIIAgjAoRCAFIEQCAIIwJCf4WDIQkgCUIBhkKq1arVqtWq1ap/hCAJfUKq1arVqtWq1ap/hSEJIAogCSAIIwKEhUJ/hYMhCiAJIAiDQj+IJAILIAogCkIBhoUhCiAKIApCAoaFIQogCiAKQgSGhSEKIAogCkIIhoUhCiAKIApCEIaFIQogCiAKQiCGhSEKIAojA4UhCiAKQj+HJAMgCkJ/hSELIAsgBCAFIAYgB/0MOjo6Ojo6Ojo6Ojo6Ojo6OhAAgyEMIwAgDHunaiQAIAgjBCMFhIRCAFIEQCAIIAqDIwSEIQ8gCiAPfCEOIA4gD1StJAQgDiALgyEOIA5CAYYjBYQhDyAOQj+IJAUgCyAE/QwgICAgICAgICAgICAgICAg/XMgBf0MICAgICAgICAgICAgICAgIP1zIAb9DCAgICAgICAgICAgICAgICD9cyAH/QwgICAgICAgICAgICAgICAg/XP9DAAAAAAAAAAAAAAAAAAAAAAQAIMhDSANIA98IQ4jBSAOIA9UrYQkBSMGIA4gDINCAFJyJAYLIAT9DCAgICAgICAgICAgICAgICD9UCEEIAX9DCAgICAgICAgICAgICAgICD9UCEFIAb9DCAgICAgICAgICAgICAgICD9UCEGIAf9DCAgICAgICAgICAgICAgICD9UCEHIwEgCyAEIAUgBiAH/Qx7e3t7e3t7e3t7e3t7e3t7EACDe6dqJAEjASACSgRAQX8PCyMBIAsgBCAFIAYgB/0MfX19fX19fX19fX19fX19fRAAg3unayQBDAALCyMAQQF0IwZyCw==';

/** The part of `WebAssembly` that is used, written out: not every runtime has it, nor its types. */
interface Wasm {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
}

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly count: (length: number, first: number, most: number) => number;
}

/** Bytes of text that one call is given: the module's page less room for filling up the last block. */
const CHUNK = 65_536 - 64;

/**
 * `countMembers` at a third of its time, copying included: 64 bytes at a time where the runtime has WebAssembly with
 * SIMD and lets bytes be compiled (workerd does not); else undefined. Counts alike in valid JSON, but for text that
 * may nest too deep: undefined is only a suspicion here, for `countMembers` to look into.
 * Its memory is scratch paper: nothing that a call reads was left there by another.
 */
export function simdCounter(
  wasm: Wasm | undefined = (globalThis as { readonly WebAssembly?: Wasm }).WebAssembly,
): CountMembers | undefined {
  const exports = wasm && instantiate(wasm);
  if (!exports) return undefined;
  const { count } = exports;
  const scratch = new Uint8Array(exports.memory.buffer);
  return (bytes, most) => {
    const { length } = bytes;
    let counted = 0;
    for (let at = 0; at < length && counted >= 0; at += CHUNK) {
      const chunk = length <= CHUNK ? bytes : bytes.subarray(at, at + CHUNK);
      scratch.set(chunk);
      counted = count(chunk.length, at === 0 ? 1 : 0, most);
    }
    return counted < 0 ? undefined : { members: counted >> 1, escapedNames: (counted & 1) === 1 };
  };
}

function instantiate(wasm: Wasm): Exports | undefined {
  try {
    const bytes = Uint8Array.from(atob(MODULE), (char) => char.charCodeAt(0));
    return new wasm.Instance(new wasm.Module(bytes)).exports as Exports;
  } catch {
    // No SIMD, no leave to compile, or no address space left for the memory: the plain way counts as well.
    return undefined;
  }
}
