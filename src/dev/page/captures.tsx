// The view that explains a captured request: pasted text, or a file of the receiver's option `captureRefused` (dev.md
// §3.5). app.tsx shows it.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { CaptureList, CaptureRequest, DeliveryFull } from '../wire.ts';
import type { Api } from './api.ts';
import { bytesText, Text, Time } from './parts.tsx';

function useFiles(api: Api): readonly [CaptureList | undefined, () => void] {
  const [list, setList] = useState<CaptureList>();
  const read = (): void => {
    api.get<CaptureList>('captures').then(setList, () => setList(undefined));
  };
  useEffect(read, [api]);
  return [list, read];
}

function Files({ list, onFile }: { list: CaptureList; onFile: (file: string) => void }): JSX.Element {
  const { folder, files } = list;
  if (!files || files.length === 0) {
    return (
      <p class="empty">
        {files ? 'No files in ' : 'There is no folder '}
        <Text value={folder} />. A receiver with the option <code>captureRefused</code> writes what it refuses
        into one; dev reads the folder that <code>--refused</code> names.
      </p>
    );
  }
  return (
    <ul class="files">
      {files.map(({ file, at, bytes }) => (
        <li key={file}>
          <button type="button" onClick={() => onFile(file)}>
            <Text value={file} />
          </button>
          <span class="faint">
            <Time at={at} /> {bytesText(bytes)}
          </span>
        </li>
      ))}
    </ul>
  );
}

/**
 * Lets the user paste a captured request or choose a file, and has it explained. `onExplained` gets the number of the
 * new delivery.
 */
export function Captures({ api, onExplained }: { api: Api; onExplained: (id: number) => void }): JSX.Element {
  const [text, setText] = useState('');
  const [keys, setKeys] = useState('');
  const [problem, setProblem] = useState<string>();
  const [list, readFiles] = useFiles(api);
  const explain = (request: CaptureRequest): void => {
    setProblem(undefined);
    api.post<DeliveryFull>('captures', request).then(
      ({ id }) => onExplained(id),
      (error: unknown) => setProblem((error as Error).message),
    );
  };
  return (
    <article class="captures">
      <h2>Captures</h2>
      <p>A delivery that was captured elsewhere is taken through the checks of a receiver.</p>
      {problem !== undefined && (
        <p class="notice bad" role="alert">
          <Text value={problem} />
        </p>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          explain({ text, ...(keys.trim() !== '' && { keys }) });
        }}
      >
        <label class="field">
          <span>A raw HTTP request, HAR, or a curl command</span>
          <textarea
            required
            rows={8}
            spellcheck={false}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <details>
          <summary>Keys of the seller, if it is none of dev's</summary>
          <label class="field">
            <span>A JWK or a JWKS</span>
            <textarea
              rows={4}
              spellcheck={false}
              value={keys}
              onInput={(event) => setKeys(event.currentTarget.value)}
            />
          </label>
        </details>
        <button type="submit" class="primary">
          Explain
        </button>
        <p class="faint">What is pasted stays in dev's memory, and is never written to the disk.</p>
      </form>
      <h3>
        Refused deliveries{' '}
        <button type="button" class="quiet" onClick={readFiles}>
          Read the folder again
        </button>
      </h3>
      {list && <Files list={list} onFile={(file) => explain({ file })} />}
    </article>
  );
}
