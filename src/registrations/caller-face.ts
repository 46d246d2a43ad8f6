// Names that `proto-webhooks/registrations`, `/mcp` and `/a2a` share: types and errors of calls to sellers. These three
// entries re-export them.
export { AnswerRefusedError } from '../calls/refused-answer.ts';
export type { CallSessions } from '../calls/sessions.ts';
export {
  SellerBusyError,
  SellerError,
  type SellerErrorCode,
  type SellerErrorOptions,
  TaskUnknownError,
} from './answer.ts';
export type { CallSeller } from './call-seller.ts';
