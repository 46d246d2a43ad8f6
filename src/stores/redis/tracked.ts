/** Keeps `work` among what runs until it settles, so that a close can wait for it. */
export function tracked<T>(running: Set<Promise<unknown>>, work: Promise<T>): Promise<T> {
  running.add(work);
  const gone = (): void => void running.delete(work);
  work.then(gone, gone);
  return work;
}
