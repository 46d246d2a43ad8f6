/** How a code comes about through the public API, and what its owner reads of it. */
export interface Row<T> {
  readonly test: () => Promise<T>;
  /** Text that the message has: of an outcome its `detail`, of an alarm or an error its `message`. */
  readonly message: string;
}
