import { receivedAuthority } from '../../auth/rfc9421/host-check.ts';
import { publicUrlOf } from '../../config/public-url.ts';
import { formedUrl, URL_FORMS } from '../../config/url-forms.ts';
import type { Case } from './explain.ts';

/** URLs for which a receiver tries a signature that fails for its own: canonical (verification.md §2.34). */
export function receiverTries({ request, target }: Pick<Case, 'request' | 'target'>): ReadonlySet<string> {
  const { delivery } = request;
  // What takes http takes it for `publicUrl` and for every form of it.
  const allowLoopback = target.targetUri.startsWith('http:');
  const evidence = {
    publicUrl: publicUrlOf(target.targetUri, allowLoopback),
    target,
    authority: receivedAuthority(delivery),
    requestTarget: delivery.url ?? '/',
    allowLoopback,
  };
  const formed = URL_FORMS.map((form) => formedUrl(form, evidence)?.target.targetUri);
  return new Set(formed.filter((uri) => uri !== undefined));
}
