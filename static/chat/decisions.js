/** Decisions on tool calls, and who may make them. */

import { me } from "./context.js";
import { gettext } from "./words.js";

/**
 * The user who asked for the work decides, or an owner of the chat.
 * @param {import("./store/chat.js").Chat} chat @param {{userId: string}} approval
 */
export function mayDecide({ participants }, { userId }) {
  const mine = participants.find((one) => one.kind === "user" && String(one.id) === me.id);
  return !userId || userId === me.id || mine?.role === "owner";
}

/**
 * Send a decision, and report if it cannot be sent.
 * @param {import("../uamp/chat-session.js").ChatSession} session
 * @param {{approval: {key: string}, approved: boolean, reason: string}} decision
 * @param {(text: string) => void} say
 */
export function decide(session, { approval: { key }, approved, reason }, say) {
  // The card has a copy; the client keeps the approval itself.
  const approval = session.approvals.list.find((one) => one.key === key);
  if (approval && !session.decide(approval, approved, reason))
    say(gettext("You're offline. Try again when you're back online."));
}
