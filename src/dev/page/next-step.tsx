// The part of a delivery's view that says what to do next: cause, advice, findings of `explain` (dev.md §3.4).
// detail.tsx shows it.
import type { JSX } from 'preact';
import type { DeliveryFull, DevState, ShownFinding } from '../wire.ts';
import { causeWords } from './model.ts';
import { Paste, Text } from './parts.tsx';

/**
 * Shows a cause that `explain` has found. Texts that the view of this delivery (`given`) already shows are left out.
 */
function Finding({ finding, given }: { finding: ShownFinding; given: DeliveryFull }): JSX.Element {
  const { says, fix, proved } = finding;
  return (
    <li>
      {says !== given.cause?.says && (
        <p>
          <strong>
            <Text value={says} />
          </strong>{' '}
          <span class="faint">{proved ? 'proved' : 'likely'}</span>
        </p>
      )}
      {fix !== '' && fix !== given.next && (
        <p>
          <Text value={fix} />
        </p>
      )}
    </li>
  );
}

/** Shows the advice. Options of the seller that the advice quotes are shown below it as a block to copy. */
function Step({ next, full, dev }: { next: string; full: DeliveryFull; dev: DevState }): JSX.Element {
  const line = dev.sellers.find(({ scheme }) => scheme === full.scheme)?.line;
  const parts = line === undefined ? [next] : next.split(line);
  return (
    <>
      <p>
        <Text value={parts.join('…')} />
      </p>
      {line !== undefined && parts.length > 1 && (
        <Paste value={line} label={`The line of senders for ${full.scheme}`} />
      )}
      {full.status === 503 && (
        <p>
          After a 503 a seller tries again by itself. Here press <strong>Sign anew</strong> once it is mended.
        </p>
      )}
    </>
  );
}

/**
 * Shows why an answer was not expected, and what to do (dev.md §3.4). For an expected answer shows the reason alone,
 * e.g. why a mistake is refused.
 */
export function NextStep({ full, dev }: { full: DeliveryFull; dev: DevState }): JSX.Element | null {
  const findings = full.explanation?.findings ?? [];
  const isWrong = full.asExpected === false || (full.state === 'captured' && findings.length > 0);
  const cause = full.cause?.says;
  if (!isWrong) {
    const words = causeWords(full);
    return words === undefined ? null : (
      <p class="because">
        <Text value={words} />
      </p>
    );
  }
  return (
    <section class="next" aria-labelledby="next-title">
      <h3 id="next-title">What to do next</h3>
      {cause !== undefined && (
        <p class="cause">
          <Text value={cause} />
        </p>
      )}
      {full.next !== undefined && <Step next={full.next} full={full} dev={dev} />}
      {findings.length > 0 && (
        <ul class="findings">
          {findings.map((finding) => (
            <Finding
              key={`${finding.step} ${finding.cause} ${finding.says}`}
              finding={finding}
              given={full}
            />
          ))}
        </ul>
      )}
    </section>
  );
}
