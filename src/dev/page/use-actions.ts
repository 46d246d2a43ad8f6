// Makes the actions of the page: send, resend, start a scenario, read older rows. The views get them from app.tsx.
import { type Dispatch, useMemo } from 'preact/hooks';
import type {
  DeliveryList,
  DeliveryRow,
  ResendRequest,
  ScenarioRequest,
  ScenarioStarted,
  SendRequest,
} from '../wire.ts';
import type { Api } from './api.ts';
import { show } from './route.ts';
import type { Change } from './use-model.ts';

/** The actions that the user can start. None rejects: an error is shown at the top of the page. */
export interface Actions {
  readonly send: (request: SendRequest) => Promise<void>;
  readonly resend: (id: number, how: ResendRequest['how']) => Promise<void>;
  readonly start: (name: string, request: ScenarioRequest) => Promise<void>;
  readonly older: (before: number) => Promise<void>;
}

export function useActions(api: Api, dispatch: Dispatch<Change>): Actions {
  return useMemo(() => {
    const tried = async (action: () => Promise<void>): Promise<void> => {
      try {
        dispatch({ kind: 'problem', message: undefined });
        await action();
      } catch (error) {
        dispatch({ kind: 'problem', message: (error as Error).message });
      }
    };
    const sent = async (path: string, body: object): Promise<void> =>
      tried(async () => {
        const row = await api.post<DeliveryRow>(path, body);
        dispatch({ kind: 'row', row });
        show({ view: 'deliveries', id: row.id });
      });
    return {
      send: async (request) => sent('send', request),
      resend: async (id, how) => sent(`deliveries/${id}/resend`, { how }),
      start: async (name, request) =>
        tried(async () => {
          await api.post<ScenarioStarted>(`scenarios/${encodeURIComponent(name)}`, request);
        }),
      older: async (before) =>
        tried(async () => {
          dispatch({ kind: 'older', list: await api.get<DeliveryList>(`deliveries?before=${before}`) });
        }),
    };
  }, [api]);
}
