import { UsageError } from '../usage-error.ts';

/** @param there bytes of the body that the capture has; `told`: how many it is said to have. */
export function cutShort(there: number, told: number): UsageError {
  return new UsageError(`cut short inside the body: ${told - there} of its ${told} bytes are missing`);
}

/** What the Content-Length lines say, where they are numbers. */
export function contentLengths(headers: readonly (readonly [string, string])[]): number[] {
  const lines = headers.filter(([name]) => name.toLowerCase() === 'content-length');
  return lines
    .map(([, value]) => value.trim())
    .flatMap((value) => (/^\d{1,15}$/.test(value) ? [Number(value)] : []));
}

/**
 * More bytes than were told are no fault of a capture: exporters decode what was compressed.
 * @throws UsageError where there are fewer.
 */
export function requireWhole(body: Uint8Array, told: readonly number[]): void {
  const most = Math.max(0, ...told);
  if (body.length < most) throw cutShort(body.length, most);
}
