/** A value that is there, or a promise of it where something has to be waited for first. */
export type Eventual<T> = T | Promise<T>;

/** Whether it has to be waited for. */
export function isPending<T>(value: Eventual<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && 'then' in value;
}

/**
 * What `use` makes of the value: at once where it is there, and what `use` throws is thrown then. An async function
 * would make its promises for every delivery, and most wait for nothing.
 */
export function whenThere<T, R>(value: Eventual<T>, use: (value: T) => Eventual<R>): Eventual<R> {
  return isPending(value) ? value.then(use) : use(value);
}
