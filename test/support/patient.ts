/** The `timeoutMs` of a store whose time limit no test is about. A busy machine may take seconds for a statement. */
export const PATIENT_MS = 60_000;
