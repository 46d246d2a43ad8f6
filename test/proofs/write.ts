// npm run docs:proofs: writes the tables of the proofs into the pages.
import { writeProofPages } from './page.ts';

await writeProofPages();
