// Exports names of `src/cli` that tests, benchmarks and scripts need, and no public entry has.
// Nothing in `src` imports this file, and no bundle contains it (CONTRIBUTING.md).

export type { Capture } from './capture/capture.ts';
export { readCapture } from './capture/read-capture.ts';
export { searchBody } from './explain/body-rewrites.ts';
export {
  type Cause,
  CUT_SHORT,
  type ExplainInput,
  type Explanation,
  type Finding,
} from './explain/explain-case.ts';
export { explainDelivery } from './explain/explain.ts';
export { urlForms } from './explain/url-rewrites.ts';
export { addExplain } from './explain/explain-verb.ts';
export { type Chain, walkChain } from './keys/chain.ts';
export { createDocuments } from './keys/documents.ts';
export { checkRevocations, type RevocationState } from './keys/revocations.ts';
export { blockingFaults, PROBE_KEYS, sharedNotes } from './keys/keys-verb.ts';
export { hintOf, type Identity } from './probe/identity.ts';
export { createKit, type KitOptions, type ProbeKit, type ProbeResult } from './probe/probe-kit.ts';
export { awaitKeys, leakOf, type Patience, PROBE_CASES, probeReceiver, secretsIn } from './probe/probe.ts';
export { reportOf } from './probe/probe-verb.ts';
export { type CliProcess, cliProgram, main } from './program.ts';
export { httpText } from './send/send-verb.ts';
export { createPaint, harmless, inLine, inLines, type RunVerb, UsageError, wantsColour } from './shell.ts';
