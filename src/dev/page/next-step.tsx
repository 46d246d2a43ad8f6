import type { JSX } from 'preact';
import type { DeliveryFull, DevState, ShownFinding } from '../wire.ts';
import { Paste, Text } from './parts.tsx';

/** Codes after which a receiver is likely to lack the line of the seller, or to have it for another scheme. */
const NEEDS_LINE = new Set(['webhook_signature_key_unknown', 'webhook_mode_mismatch', 'unknown_sender']);

/** @param given what stands above it already. */
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

/** What the seller of this delivery needs in the receiver's options. */
function Line({ full, dev }: { full: DeliveryFull; dev: DevState }): JSX.Element | null {
  const seller = dev.sellers.find(({ scheme }) => scheme === full.scheme);
  if (!seller || !NEEDS_LINE.has(full.code ?? '')) return null;
  return <Paste value={seller.line} label={`The line of senders for ${seller.scheme}`} />;
}

/** Why the answer was not the expected one, and what to do: dev.md §3.4. Of what is expected, why a mistake is refused. */
export function NextStep({ full, dev }: { full: DeliveryFull; dev: DevState }): JSX.Element | null {
  const findings = full.explanation?.findings ?? [];
  const isWrong = full.asExpected === false || (full.state === 'captured' && findings.length > 0);
  const cause = full.cause?.says;
  if (!isWrong) {
    return cause === undefined ? null : (
      <p class="because">
        <Text value={cause} />
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
      {full.next !== undefined && (
        <p>
          <Text value={full.next} />
        </p>
      )}
      <Line full={full} dev={dev} />
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
