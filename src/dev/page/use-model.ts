// Reads the state of dev, follows its events, and keeps both as the model of the page (dev.md §4.3). app.tsx uses it.
import { type Dispatch, useEffect, useReducer } from 'preact/hooks';
import type { DeliveryList, DeliveryRow, DevEvents, DevState } from '../wire.ts';
import { type Api, codeOf } from './api.ts';
import type { StreamedEvent } from './event-stream.ts';
import { followEvents } from './follow.ts';
import { isEventName, type Model, withEvent, withRows } from './model.ts';

/** The model of the page, and the state of its connection to dev. */
export interface Known {
  /** Undefined until dev's state has been read once. */
  readonly model: Model | undefined;
  readonly isConnected: boolean;
  /** The message of the last error. Undefined once the user has dismissed it. */
  readonly problem: string | undefined;
}

/** A change of the page's model or of its connection. */
export type Change =
  | { readonly kind: 'read'; readonly dev: DevState; readonly list: DeliveryList }
  | { readonly kind: 'older'; readonly list: DeliveryList }
  /**
   * The row that an action returned. If events have brought the same row already, their row wins, because it may be
   * newer.
   */
  | { readonly kind: 'row'; readonly row: DeliveryRow }
  | { readonly kind: 'event'; readonly type: string; readonly data: unknown }
  | { readonly kind: 'connected'; readonly isConnected: boolean }
  | { readonly kind: 'problem'; readonly message: string | undefined }
  | { readonly kind: 'alarm seen' };

function read({ dev, list }: Change & { readonly kind: 'read' }, before: Model | undefined): Model {
  return {
    dev,
    rows: list.rows,
    before: list.before,
    calls: before?.calls ?? [],
    alarm: before?.alarm,
    said: '',
  };
}

function changedModel(model: Model | undefined, change: Change): Model | undefined {
  if (change.kind === 'read') return read(change, model);
  if (!model) return undefined;
  switch (change.kind) {
    case 'older':
      return { ...model, rows: withRows(model.rows, change.list.rows), before: change.list.before };
    case 'row':
      return { ...model, rows: withRows([change.row], model.rows) };
    case 'alarm seen':
      return { ...model, alarm: undefined };
    case 'event':
      return isEventName(change.type)
        ? withEvent(model, change.type, change.data as DevEvents[typeof change.type])
        : model;
    case 'connected':
    case 'problem':
      return model;
  }
}

const changed = (known: Known, change: Change): Known => ({
  model: changedModel(known.model, change),
  isConnected: change.kind === 'connected' ? change.isConnected : known.isConnected,
  problem: change.kind === 'problem' ? change.message : known.problem,
});

/** Reads the state of dev and follows its events. After the event `gap` reads the state again. */
export function useModel(api: Api, onRefused: () => void): readonly [Known, Dispatch<Change>] {
  const [known, dispatch] = useReducer(changed, { model: undefined, isConnected: true, problem: undefined });
  useEffect(() => {
    const ended = new AbortController();
    const readAll = async (): Promise<string> => {
      const dev = await api.get<DevState>('state');
      const list = await api.get<DeliveryList>('deliveries');
      if (!ended.signal.aborted) dispatch({ kind: 'read', dev, list });
      return dev.lastEvent;
    };
    const failed = (error: unknown): void => {
      if (ended.signal.aborted) return;
      if (codeOf(error) === 'unauthorized') onRefused();
      else dispatch({ kind: 'problem', message: (error as Error).message });
    };
    const follow = async (): Promise<void> => {
      const lastId = await readAll();
      // Events are applied one after the other, so that events behind a `gap` wait until the state was read again.
      let tail = Promise.resolve();
      const onEvent = ({ type, data }: StreamedEvent): void => {
        const before = tail;
        const next = async (): Promise<void> => {
          await before;
          if (type === 'gap') await readAll();
          else dispatch({ kind: 'event', type, data: JSON.parse(data) });
        };
        tail = next().catch(failed);
      };
      await followEvents(
        api,
        lastId,
        {
          onEvent,
          onConnected: (isConnected) => dispatch({ kind: 'connected', isConnected }),
          onRefused: failed,
        },
        ended.signal,
      );
    };
    follow().catch(failed);
    return () => ended.abort();
  }, [api]);
  return [known, dispatch];
}
