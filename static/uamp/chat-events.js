/** Handlers that apply each wire event to the session of a chat. Used only by `ChatSession`. */

import { LiveResponse, reasonOf } from "./live-response.js";

/**
 * @typedef {import("./chat-session.js").ChatSession} ChatSession
 * @typedef {import("./types.js").Frame} Frame
 * @typedef {import("./types.js").ErrorBody} ErrorBody
 * @typedef {import("./outbox.js").Turn} Turn
 */

/**
 * Errors not reported: `session.created` already reports the first, and the second means that the
 * wish is fulfilled.
 */
const QUIET = new Set(["resync", "nothing_to_cancel"]);
/** Temporary refusals of a turn: nothing is wrong with the turn (docs/protocol/errors.md). */
const LATER = new Set(["unavailable", "busy"]);
/** The session ended because the user is signed out; the connection closes for the same reason. */
const SIGNED_OUT = new Set(["unauthorized", "token_expired"]);

/**
 * Return the running answer that an event belongs to, creating it for its first event.
 * @param {ChatSession} chat @param {Frame} event
 * @returns {LiveResponse|null}
 */
function responseOf(chat, event) {
  if (!event.response_id || chat.ended.has(event.response_id)) return null;
  let response = chat.responses.get(event.response_id);
  if (!response) {
    response = new LiveResponse(event.response_id, event);
    chat.responses.set(response.id, response);
  }
  return response;
}

/** @param {ChatSession} chat @param {LiveResponse|null|undefined} response */
function changed(chat, response) {
  if (response) chat.emit("response", response);
}

/** @param {ChatSession} chat @param {Frame} event */
function onMessage(chat, event) {
  chat.noteOwn([event.message]);
  chat.acknowledge(event.message);
  const { response_id: answered } = event.message;
  // The end of a response comes before its message.
  if (chat.ended.has(answered)) event.message.signature = chat.signatures.get(answered) ?? null;
  chat.signatures.delete(answered);
  chat.emit("message", event);
}

/** @param {ChatSession} chat @param {Frame} event */
function onCreated(chat, event) {
  const response = responseOf(chat, event);
  if (!response) return;
  response.agent ||= event.agent || "";
  response.messageId ||= event.message_id || "";
  response.transport ||= event.transport || "";
  response.thread ||= event.thread || "";
  changed(chat, response);
}

/** @param {ChatSession} chat @param {Frame} event */
function onDelta(chat, event) {
  const response = responseOf(chat, event);
  if (typeof event.delta?.audio === "string") {
    chat.emit("sound", event);
    return;
  }
  response?.applyDelta(event);
  changed(chat, response);
}

/** @param {ChatSession} chat @param {Frame} event */
function onTranscript(chat, event) {
  const messageId = chat.responses.get(event.response_id)?.messageId;
  if (event.role === "user" && messageId && event.transcript)
    chat.emit("transcript", { message_id: messageId, transcript: event.transcript });
}

/** @param {ChatSession} chat @param {Frame} event */
function onThinking(chat, event) {
  const latest = Array.from(chat.responses.values()).at(-1);
  const response = responseOf(chat, event) || (event.response_id ? null : latest);
  response?.applyThinking(event);
  changed(chat, response);
}

/**
 * @param {ChatSession} chat @param {Frame} event
 * @param {(response: LiveResponse) => void} apply
 */
function onTool(chat, event, apply) {
  const callId = event.target_id || event.call_id;
  for (const response of chat.responses.values()) {
    if (response.tool(callId)) {
      apply(response);
      changed(chat, response);
    }
  }
}

/** @param {ChatSession} chat @param {Frame} event */
function onProgress(chat, event) {
  if (event.target !== "response") {
    onTool(chat, event, (response) => response.applyProgress(event));
    return;
  }
  const response = chat.responses.get(event.target_id);
  response?.applyStage(event);
  changed(chat, response);
}

/** @param {ChatSession} chat @param {Frame} event */
function onApproval(chat, event) {
  const isAsked = event.type === "tool.approval_required";
  const asked = isAsked ? chat.approvals.asked(event) : chat.approvals.done(event);
  const response = chat.responses.get(event.response_id);
  const tool = response?.tool(event.call_id);
  if (tool) {
    tool.asking = isAsked;
    changed(chat, response);
  }
  if (asked) chat.emit("approvals", asked);
}

/** @param {ChatSession} chat @param {Frame} event */
function onPayment(chat, event) {
  const asked = chat.payments.asked(event);
  if (asked) chat.emit("payments", asked);
}

/** @param {ChatSession} chat @param {Frame} event */
function onEnd(chat, event) {
  if (event.signature && (event.response?.output ?? event.partial_output)?.length)
    chat.signatures.set(event.response_id, event.signature);
  const turn = chat.turnOf(event.error?.details?.event_id);
  if (turn) refused(chat, turn, event.error);
  const response = responseOf(chat, event);
  if (!response) return;
  chat.ended.add(response.id);
  chat.responses.delete(response.id);
  response.finish(event);
  chat.approvals.responseEnded(response.id);
  chat.payments.responseEnded(response.id);
  if (response.status !== "completed") {
    response.reason = reasonOf(event, chat.client.userId);
    chat.failures.set(response.id, response.reason);
    chat.broken.set(response.id, response);
  }
  chat.emit("response-end", response);
}

/** @param {ChatSession} chat @param {Frame} event */
function onSessionError(chat, event) {
  /** @type {ErrorBody} */
  const error = event.error || {};
  const { code = "" } = error;
  const cause = error.details?.event_id;
  const turn = chat.turnOf(cause);
  if (turn) refused(chat, turn, error);
  else if (chat.callEvents.delete(cause)) chat.emit("call-error", error);
  else if (chat.approvals.refused(cause) || chat.payments.notDue(cause)) return;
  else if (QUIET.has(code) || (!cause && SIGNED_OUT.has(code))) return;
  else if (cause !== chat.createId) chat.emit("error", { ...error, fatal: false });
  else chat.notCreated(error);
}

/** @param {ChatSession} chat @param {Turn} turn @param {ErrorBody} error */
function refused(chat, turn, error) {
  // Errors that follow from the first refusal, such as for a request whose input was rejected, say
  // nothing about the turn.
  if (turn.state === "held") return;
  const seconds = error.details?.retry_after;
  if (LATER.has(error.code || "") && seconds !== undefined) chat.hold(turn, seconds);
  else chat.fail(turn, error.message || error.code || "");
}

/** @param {ChatSession} chat @param {Frame} event */
const onAct = (chat, event) => chat.emit("act", event);

/** @type {Record<string, (chat: ChatSession, event: Frame) => void>} */
export const HANDLERS = {
  "message.created": onMessage,
  "message.edited": onAct,
  "message.deleted": onAct,
  "message.pinned": onAct,
  "message.unpinned": onAct,
  "reaction.added": onAct,
  "reaction.removed": onAct,
  "response.created": onCreated,
  "response.delta": onDelta,
  "transcript.done": onTranscript,
  thinking: onThinking,
  progress: onProgress,
  "tool.call_done": (chat, event) =>
    onTool(chat, event, (response) => response.applyCallDone(event)),
  "tool.approval_required": onApproval,
  "tool.approval_done": onApproval,
  "payment.required": onPayment,
  "payment.accepted": (chat, event) => chat.payments.accepted(event),
  "payment.error": (chat, event) => chat.payments.refused(event),
  "response.done": onEnd,
  "response.cancelled": onEnd,
  "response.error": onEnd,
  "presence.typing": (chat, event) => chat.emit("typing", event),
  "message.read": (chat, event) => chat.emit("read", event),
  "participant.joined": (chat, event) => chat.emit("participants", event),
  "participant.left": (chat, event) => chat.emit("participants", event),
  "participant.updated": (chat, event) => chat.emit("participants", event),
  "link.created": (chat, event) => chat.emit("participants", event),
  "link.revoked": (chat, event) => chat.emit("participants", event),
  "agent.stopped": (chat, event) => chat.emit("participants", event),
  "call.ended": (chat, event) => chat.emit("fact", event),
  "chat.updated": (chat, event) => chat.emit("participants", event),
  "state.updated": (chat, event) => chat.state.apply(event) && chat.emit("state", chat.state),
  "queue.updated": (chat, event) => chat.takeQueue(event),
  rate_limit: (chat, event) => chat.emit("limit", event),
  "session.error": onSessionError,
};
