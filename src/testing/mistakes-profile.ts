// Rows of the table of wrong deliveries for checks 2 to 6: well-formed signatures that break the profile (the rules for
// webhook signatures). The rows stand in the order of the conformance test cases. The table in mistakes.ts takes them.
import { but, detail, dropped, FIVE, narrow, refusedBy, type Altered, type Rows } from './mistake-row.ts';

const parameters = refusedBy(2, 'webhook_signature_params_incomplete', 'parameters');
const nonce = refusedBy(2, 'webhook_signature_header_malformed', 'parameters');
const tag = refusedBy(3, 'webhook_signature_tag_invalid', 'parameters');
const alg = refusedBy(4, 'webhook_signature_alg_not_allowed', 'parameters');
const window = refusedBy(5, 'webhook_signature_window_invalid', 'parameters');
const components = refusedBy(6, 'webhook_signature_components_incomplete', 'components');

const text = (name: string, value: string | undefined): Altered => ({ params: { [name]: value } });
const quoted = (name: string, value: string): Altered => text(name, `"${value}"`);
const absent = (name: string): Altered => text(name, undefined);

export const PARAMETER_VALUES: Rows = {
  'parameter-absent-created': parameters('The parameter created is absent.', absent('created')),
  'parameter-absent-expires': parameters('The parameter expires is absent.', absent('expires')),
  'parameter-absent-nonce': parameters('The parameter nonce is absent.', absent('nonce')),
  'parameter-absent-keyid': parameters('The parameter keyid is absent.', absent('keyid')),
  'parameter-absent-alg': parameters('The parameter alg is absent.', absent('alg')),
  'parameter-absent-tag': parameters('The parameter tag is absent.', absent('tag')),
  'parameters-absent-all': detail(
    parameters('No parameter at all.', {
      params: {
        created: undefined,
        expires: undefined,
        nonce: undefined,
        keyid: undefined,
        alg: undefined,
        tag: undefined,
      },
    }),
  ),
  'nonce-15-bytes': nonce('A nonce of 15 bytes.', quoted('nonce', 'SeEHKHtqj4ws_K0jUYgs')),
  'nonce-empty': detail(nonce('An empty nonce.', quoted('nonce', ''))),
  'nonce-padded': detail(nonce('A padded nonce.', (given) => quoted('nonce', `${given.nonce}==`))),
  'nonce-standard-alphabet': detail(
    nonce('A nonce in the standard alphabet.', (given) => quoted('nonce', `${given.nonce.slice(0, 20)}+/`)),
  ),
  'nonce-impossible-length': detail(
    nonce('A nonce of a length that is impossible in base64url.', (given) =>
      quoted('nonce', given.nonce.padEnd(25, 'A')),
    ),
  ),
  'wrong-tag': tag('The tag of request signatures.', ({ protocol }) =>
    quoted('tag', `${protocol}/request-signing/v1`),
  ),
  'tag-other-version': detail(
    tag('The tag of another version.', ({ protocol }) => quoted('tag', `${protocol}/webhook-signing/v2`)),
  ),
  'tag-upper-case': detail(
    tag('The tag in upper case: tags are compared byte for byte.', ({ protocol }) =>
      quoted('tag', `${protocol.toUpperCase()}/webhook-signing/v1`),
    ),
  ),
  'tag-empty': detail(tag('An empty tag.', quoted('tag', ''))),
  'tag-before-window': but(
    tag('A wrong tag and an expired signature: the tag is checked first.', ({ protocol, now }) => ({
      params: {
        created: String(now - 900),
        expires: String(now - 600),
        tag: `"${protocol}/other/v1"`,
      },
    })),
    { by: ['probe', 'seller'] },
  ),
  'alg-rsa': alg('An algorithm of RFC 9421 that the profile lacks.', quoted('alg', 'rsa-pss-sha512')),
  'alg-hmac': detail(alg('A symmetric algorithm.', quoted('alg', 'hmac-sha256'))),
  'alg-p384': detail(alg('ECDSA P-384.', quoted('alg', 'ecdsa-p384-sha384'))),
  'alg-upper-case': detail(alg('ed25519 in other case.', quoted('alg', 'Ed25519'))),
  'alg-jose-name': detail(alg('The JOSE name of the algorithm.', quoted('alg', 'EdDSA'))),
  'alg-none': detail(alg('No algorithm.', ({ pick }) => quoted('alg', pick(['none', 'toString', ''])))),
};

/** Sets the parameters `created` and `expires`, each in seconds after the sender's `now`. */
const times =
  (created: number, expires: number) =>
  ({ now }: { readonly now: number }): Altered => ({
    params: { created: String(now + created), expires: String(now + expires) },
  });

export const WINDOWS: Rows = {
  'window-equal': window('expires equals created.', times(0, 0)),
  'window-backwards': detail(window('expires is before created.', times(0, -1))),
  'window-too-long': window('expires is 301 s after created.', times(-100, 201)),
  // The next two rows are one second outside the allowed time, so they need a clock that stands still.
  'window-created-too-far-ahead': narrow(window('created is 61 s ahead.', times(61, 300))),
  'window-expired': narrow(window('expires is 61 s behind.', times(-300, -61))),
  'window-milliseconds': window('Milliseconds instead of seconds.', ({ now }) => ({
    params: { created: String(now * 1000), expires: String(now * 1000 + 300) },
  })),
  'window-negative': detail(
    window('created is negative.', ({ now }) => ({ params: { created: '-1', expires: String(now + 1) } })),
  ),
  // The next two rows are minutes outside the allowed time. So a receiver refuses them even if its clock differs from
  // the sender's.
  expired: but(window('A signature of a quarter of an hour ago.', times(-900, -600)), {
    by: ['probe', 'seller', 'fuzz'],
  }),
  'from-the-future': but(window('created is 10 minutes ahead.', times(600, 900)), {
    by: ['probe', 'seller', 'fuzz'],
  }),
};

const allBut = (left: string): Altered => ({ components: FIVE.filter((own) => own !== left) });
const covering = (...more: readonly string[]): Altered => ({ components: [...FIVE, ...more] });
const instead = (name: string, component: string): Altered => ({
  components: FIVE.map((own) => (own === name ? component : own)),
});

export const COMPONENTS: Rows = {
  'component-absent-method': components('@method is not covered.', allBut('@method')),
  'component-absent-target-uri': components('@target-uri is not covered.', allBut('@target-uri')),
  'component-absent-authority': components('@authority is not covered.', allBut('@authority')),
  'component-absent-content-type': components('content-type is not covered.', allBut('content-type')),
  'component-absent-content-digest': components('content-digest is not covered.', allBut('content-digest')),
  'components-none': detail(components('Nothing is covered.', { components: [] })),
  'component-twice': components('A component is covered twice.', ({ pick }) => covering(pick(FIVE))),
  'component-sf': components(
    'content-type;sf instead of content-type.',
    instead('content-type', '"content-type";sf'),
  ),
  'component-sf-beside': detail(
    components('A component with ;sf beside the plain one.', covering('"content-type";sf')),
  ),
  'component-bs': detail(components('A component with ;bs.', covering('"content-type";bs'))),
  'component-key': detail(components('A component with ;key.', covering('"content-digest";key="sha-256"'))),
  'component-req': detail(components('A component with ;req.', covering('"@method";req'))),
  'component-tr': detail(components('A component with ;tr.', covering('"content-type";tr'))),
  'component-field-absent': components('A covered field that the request lacks.', covering('x-absent')),
  'component-upper-case': detail(
    components(
      'A field name in upper case, which is not a component.',
      instead('content-type', '"Content-Type"'),
    ),
  ),
  'component-status': detail(components('@status, which no request has.', covering('@status'))),
  'component-query-param': detail(components('@query-param;name.', covering('"@query-param";name="a"'))),
  'component-unknown-derived': detail(
    components('A derived component that does not exist.', covering('@body')),
  ),
  'digest-absent': detail({
    ...components('Content-Digest is covered and absent.', { sent: dropped('Content-Digest') }),
    part: 'digest',
  }),
};
