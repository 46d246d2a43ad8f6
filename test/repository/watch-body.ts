import nodeCrypto from 'node:crypto';

type AnyFunction = (this: unknown, ...args: unknown[]) => unknown;

/** Replaces a function until the returned one is called. */
function wrap(
  owner: object,
  name: string,
  see: (self: unknown, args: readonly unknown[]) => void,
): () => void {
  const original = Reflect.get(owner, name) as AnyFunction;
  const wrapper: AnyFunction = function wrapper(...args) {
    see(this, args);
    return Reflect.apply(original, this, args);
  };
  Reflect.set(owner, name, wrapper);
  return () => void Reflect.set(owner, name, original);
}

export interface Watch {
  /** What was done with the body, while not paused. */
  readonly seen: string[];
  /** Whose doings are its own affair, until the returned function is called. */
  readonly pause: () => () => void;
  readonly end: () => void;
}

/** Whatever copies, hashes or decodes bytes, where it is given the body; and every `JSON.parse`. */
export function watchBody(body: Uint8Array): Watch {
  const seen: string[] = [];
  let paused = false;
  const note = (what: string): void => {
    if (!paused) seen.push(what);
  };
  const isBody = (value: unknown): boolean =>
    value === body.buffer ||
    (ArrayBuffer.isView(value) && value.buffer === body.buffer) ||
    (Array.isArray(value) && value.some(isBody));
  const watch = (owner: object, prefix: string, ...names: readonly string[]): (() => void)[] =>
    names.map((name) =>
      wrap(owner, name, (self, args) => {
        if (isBody(self) || args.some(isBody)) note(`${prefix}${name}`);
      }),
    );
  const bytes = Object.getPrototypeOf(Uint8Array.prototype) as object;
  const ends = [
    ...watch(bytes, 'bytes.', 'slice', 'set', 'map', 'filter', 'with', 'toReversed', 'toSorted'),
    ...watch(Buffer, 'Buffer.', 'from', 'concat', 'copyBytesFrom'),
    ...watch(Buffer.prototype, 'buffer.', 'copy', 'toString'),
    ...watch(ArrayBuffer.prototype, 'arrayBuffer.', 'slice', 'transfer'),
    ...watch(globalThis, '', 'structuredClone'),
    ...watch(TextDecoder.prototype, 'TextDecoder.', 'decode'),
    ...watch(nodeCrypto, 'crypto.', 'hash'),
    wrap(JSON, 'parse', () => note('JSON.parse')),
  ];
  const Original = globalThis.Uint8Array;
  globalThis.Uint8Array = new Proxy(Original, {
    construct(target, args, newTarget): Uint8Array {
      // Of a buffer it is a view; of another view, a copy.
      if (ArrayBuffer.isView(args[0]) && isBody(args[0])) note('new Uint8Array');
      const made = newTarget === globalThis.Uint8Array ? target : newTarget;
      return Reflect.construct(target, args, made) as Uint8Array;
    },
  });
  return {
    seen,
    pause: () => {
      paused = true;
      return () => {
        paused = false;
      };
    },
    end: () => {
      globalThis.Uint8Array = Original;
      for (const end of ends) end();
    },
  };
}
