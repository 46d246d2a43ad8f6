// Names that `proto-webhooks/registrations`, `/mcp` and `/a2a` share: a caller of sellers, and the errors of its calls.
// These three entries export it again.
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
