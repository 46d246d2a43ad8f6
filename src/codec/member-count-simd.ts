import type { CountMembers } from './member-count.ts';

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
