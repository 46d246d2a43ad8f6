export { columnText, fromColumnText } from '../text.ts';
