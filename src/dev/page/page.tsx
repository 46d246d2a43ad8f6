// The script of the page, which renders the page into index.html. `scripts/dev-page.ts` bundles it, and dev serves the
// bundle (dev.md §5.1).
import { render } from 'preact';
import { Door } from './door.tsx';

const place = document.querySelector('#page');
if (place) render(<Door />, place);
