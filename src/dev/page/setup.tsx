// The view that helps to set up a receiver: options with dev's sellers, and lines that add `devHooks` (dev.md §1.1,
// §3.2). app.tsx shows it.
import type { JSX } from 'preact';
import type { DeliveryRow, DevSeller, DevState } from '../wire.ts';
import { wasReceivedWell } from './model.ts';
import { Paste, Text } from './parts.tsx';

/** The lines that make a receiver report to dev what became of each delivery. */
export const HOOK_LINES = `import { devHooks } from 'proto-webhooks/testing';

createReceiver({
  // … your options
  ...(process.env.NODE_ENV !== 'production' && devHooks()),
});`;

const SCHEME_WORDS = {
  signature: 'signed by RFC 9421: what sellers should do',
  hmac: 'HMAC-SHA256, with a shared secret: legacy',
  bearer: 'a bearer token: legacy',
} as const;

function Seller({ seller }: { seller: DevSeller }): JSX.Element {
  const { scheme, line, publicUrl, forward } = seller;
  return (
    <section aria-labelledby={`seller-${scheme}`}>
      <h3 id={`seller-${scheme}`}>
        {scheme} <span class="faint">{SCHEME_WORDS[scheme]}</span>
      </h3>
      <Paste value={line} label={`The line of senders for ${scheme}`} />
      <p class="faint">
        Signed for <Text value={publicUrl} />, which has to be the receiver's <code>publicUrl</code>
        {forward !== publicUrl && (
          <>
            , and posted to <Text value={forward} />
          </>
        )}
        .
      </p>
    </section>
  );
}

/** Shows the options that a receiver needs so that it accepts dev's sellers. */
export function Setup({ dev, rows }: { dev: DevState; rows: readonly DeliveryRow[] }): JSX.Element {
  return (
    <article class="setup">
      <h2>Set-up</h2>
      {wasReceivedWell(rows) ? (
        <p class="answer expected">A delivery was received well. Choose one from the list to look into it.</p>
      ) : (
        <p class={rows.length === 0 ? 'answer' : 'answer unexpected'}>No delivery was received well yet.</p>
      )}
      <p>
        Paste one line into the options of your receiver, start it at <Text value={dev.forward} />, and send a
        delivery. The lines stay right for as long as dev's folder is kept.
      </p>
      {dev.sellers.map((seller) => (
        <Seller key={seller.scheme} seller={seller} />
      ))}
      <section aria-labelledby="hook-title">
        <h3 id="hook-title">
          What your handlers get{' '}
          <span class="faint">{dev.hookHeard ? 'the hook was heard' : 'no hook was heard yet'}</span>
        </h3>
        <Paste value={HOOK_LINES} label="The lines of the hook" />
        <p class="faint">
          The hooks find dev by its folder, <code>.proto-webhooks</code> in the working directory. If the
          receiver runs in another one, name it: <code>{"devHooks({ dir: '…/.proto-webhooks' })"}</code>.
        </p>
      </section>
    </article>
  );
}
