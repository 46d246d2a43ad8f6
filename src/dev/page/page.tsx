import { render } from 'preact';
import { Door } from './door.tsx';

const place = document.querySelector('#page');
if (place) render(<Door />, place);
