import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { samplesOf } from '../support/samples.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What the programs of these pages are given by the one before, or by the reader. */
const GIVEN = `
import type { Pool } from 'pg';
import type { Receiver } from 'proto-webhooks';
import type { CallSeller, Registration, Registrations } from 'proto-webhooks/registrations';
declare global {
  const pool: Pool;
  const tokens: Map<string, string>;
  const isAgent: (agentUrl: string) => boolean;
  const registrations: Registrations;
  const receiver: Receiver;
  const reg: Registration;
  const call: CallSeller;
  const overTool: CallSeller;
  const overAgent: CallSeller;
  const agentUrl: string;
  const taskId: string;
  interface Task { readonly status: string; readonly result?: unknown; readonly updated_at?: string }
  const changes: number;
  const getTaskStatus: (agentUrl: string, taskId: string) => Promise<Task>;
}`;

/** What the compiler says of programs, in the strictest form that a reader may have. */
function faultsOf(programs: ReadonlyMap<string, string>): readonly string[] {
  const options: ts.CompilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    moduleDetection: ts.ModuleDetectionKind.Force,
    types: ['node'],
    skipLibCheck: true,
    noEmit: true,
  };
  const disk = ts.createCompilerHost(options);
  const host: ts.CompilerHost = {
    ...disk,
    getCurrentDirectory: () => root,
    fileExists: (path) => programs.has(path) || disk.fileExists(path),
    readFile: (path) => programs.get(path) ?? disk.readFile(path),
    getSourceFile: (path, language, ...rest) => {
      const text = programs.get(path);
      return text === undefined
        ? disk.getSourceFile(path, language, ...rest)
        : ts.createSourceFile(path, text, language);
    },
  };
  return ts
    .getPreEmitDiagnostics(ts.createProgram([...programs.keys()], options, host))
    .map(
      ({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    );
}

const named = (place: string): string => join(root, `${place.replaceAll(/[/:.]/g, '-')}.ts`);

it('programs about registrations and polling compile under strict', () => {
  const samples = ['docs/register-with-a-seller.md', 'docs/poll.md'].flatMap(samplesOf);
  expect(samples.length).toBeGreaterThan(5);
  const programs = new Map(samples.map(({ place, code }) => [named(place), code]));
  programs.set(join(root, 'given-to-docs.ts'), GIVEN);
  expect(faultsOf(programs)).toEqual([]);
  programs.set(named('wrong'), `${samples[0]?.code}\nconst wrong: number = reg.operationId;`);
  expect(faultsOf(programs)).toEqual([
    expect.stringContaining("Type 'string' is not assignable to type 'number'"),
  ]);
});
