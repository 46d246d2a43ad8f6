import { isPrintable } from '../codec/printable.ts';
import { type JsonObject, isJsonObject, present, textMember } from '../codec/members.ts';

/** Members whose text names a body (verification.md §7.8), and which of them wins; `event.event_type` comes last. */
const NAMING = ['notification_type', 'event', 'event_type'] as const;

/** What a body calls itself, as sent, the name that counts first; none where it names itself nothing. */
export function namesOf(payload: JsonObject): readonly string[] {
  const names = NAMING.map((member) => textMember(payload, member));
  const event = present(payload, 'event');
  if (isJsonObject(event)) names.push(textMember(event, 'event_type'));
  return names.filter((name) => name !== undefined);
}

/** Characters of a name. Families are looked up by it, counted and logged: no sender makes it long. */
const MAX_NAME = 128;

/** The name where it can be a family's: undefined where it is too long or has something that cannot be printed. */
export function familyName(name: string | undefined): string | undefined {
  return name !== undefined && isPrintable(name, MAX_NAME) ? name : undefined;
}
