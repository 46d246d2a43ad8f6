// Lays out the page: header, notices, forms to send, the list, and one view beside it. door.tsx shows the page once
// there is a token.
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import type { Api } from './api.ts';
import { Captures } from './captures.tsx';
import { Detail } from './detail.tsx';
import { Header } from './header.tsx';
import { KeysHelp, useKeys } from './keys.tsx';
import { List } from './list.tsx';
import { Notices } from './notices.tsx';
import { hrefOf, type Route, show, useRoute } from './route.ts';
import { Scenarios } from './scenarios.tsx';
import { SendPanel, useChosen } from './send.tsx';
import { Setup } from './setup.tsx';
import { useActions } from './use-actions.ts';
import { useModel } from './use-model.ts';

const goTo = (id: number): void => show({ view: 'deliveries', id });

/** Shows the page. Calls `onRefused` if dev does not accept the token. */
export function App({ api, onRefused }: { api: Api; onRefused: () => void }): JSX.Element {
  const [{ model, isConnected, problem }, dispatch] = useModel(api, onRefused);
  const route = useRoute();
  const help = useRef<HTMLDialogElement>(null);
  const actions = useActions(api, dispatch);
  const [chosen, choose] = useChosen();
  useKeys({ rows: model?.rows ?? [], help, actions });
  const notices = <Notices {...{ model, isConnected, problem, dispatch }} />;
  if (!model) return <main class="door">{notices}</main>;
  const { dev, rows, before, calls } = model;
  const row = route.view === 'deliveries' ? rows.find(({ id }) => id === route.id) : undefined;
  const views: { readonly [V in Route['view']]: () => JSX.Element } = {
    deliveries: () =>
      route.view === 'deliveries' && route.id !== undefined ? (
        <Detail key={route.id} id={route.id} {...{ api, row, dev, actions }} />
      ) : (
        <Setup dev={dev} rows={rows} />
      ),
    captures: () => <Captures api={api} onExplained={goTo} />,
    setup: () => <Setup dev={dev} rows={rows} />,
  };
  const isChosen = route.view !== 'deliveries' || route.id !== undefined;
  return (
    <div class={`app ${isChosen ? 'chosen' : 'listed'}`}>
      <Header dev={dev} route={route} isConnected={isConnected} onHelp={() => help.current?.showModal()} />
      {notices}
      <div class="columns">
        <section class="column left" aria-label="What dev can send">
          <SendPanel {...{ dev, chosen, choose, actions }} />
          <Scenarios {...{ dev, calls, chosen, actions }} />
        </section>
        <List rows={rows} selected={row?.id} before={before} onOlder={actions.older} />
        <main class="column view" id="view" tabIndex={-1}>
          {isChosen && (
            <a class="back" href={hrefOf({ view: 'deliveries' })}>
              Back to the deliveries
            </a>
          )}
          {views[route.view]()}
        </main>
      </div>
      <KeysHelp dialog={help} />
      <div class="sr-only" role="status" aria-live="polite">
        {model.said}
      </div>
    </div>
  );
}
