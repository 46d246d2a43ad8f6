/** Vectors that cannot be read. `message` is one line: the file, what is wrong, and what was expected. */
export class VectorError extends Error {
  override readonly name = 'VectorError';
  /** Stable, machine readable: always `vector_error`. */
  readonly code = 'vector_error';
}
