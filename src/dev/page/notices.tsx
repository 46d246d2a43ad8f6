// The notices at the top of the page: a lost connection, a refused request, an alarm that is about no delivery.
// app.tsx shows them.
import type { JSX } from 'preact';
import type { Dispatch } from 'preact/hooks';
import { Text } from './parts.tsx';
import type { Change, Known } from './use-model.ts';

type Given = Known & { readonly dispatch: Dispatch<Change> };

/** Notices about the page's connection, about the last refused request, and about the receiver as a whole. */
export function Notices({ model, isConnected, problem, dispatch }: Given): JSX.Element {
  const alarm = model?.alarm?.told;
  return (
    <div class="notices">
      {!model && problem === undefined && <p class="notice">Asking dev for its deliveries…</p>}
      {!isConnected && (
        <p class="notice bad" role="alert">
          The connection to dev is lost. This page tries again by itself; if dev has ended, start it with the
          same folder.
        </p>
      )}
      {problem !== undefined && (
        <div class="notice bad" role="alert">
          <span>
            <Text value={problem} />
          </span>
          <button
            type="button"
            class="quiet"
            onClick={() => dispatch({ kind: 'problem', message: undefined })}
          >
            Dismiss
          </button>
        </div>
      )}
      {alarm?.hook === 'alarm' && (
        <div class="notice warn" role="alert">
          <span>
            <strong>
              Alarm of the receiver: <Text value={alarm.code} />
            </strong>{' '}
            <Text value={alarm.message} />
          </span>
          <button type="button" class="quiet" onClick={() => dispatch({ kind: 'alarm seen' })}>
            Dismiss
          </button>
        </div>
      )}
    </div>
  );
}
