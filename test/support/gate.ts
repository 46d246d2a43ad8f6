export interface Gate<T> {
  readonly opened: Promise<T>;
  readonly open: (value: T) => void;
}

/** A promise that the test settles: how a handler is held open. */
export function gate<T = void>(): Gate<T> {
  const { promise: opened, resolve: open } = Promise.withResolvers<T>();
  return { opened, open };
}
