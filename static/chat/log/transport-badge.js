/**
 * The badge that names the protocol by which a message, or the question of an answer, arrived.
 * Messages over this page's transport, a WebSocket, have none.
 */

import { html } from "../../vendor/lit/lit.js";
import { gettext, interpolate } from "../words.js";

/**
 * Transports by their names on the wire (`transport` of a message): the label of the badge, and the
 * full name.
 */
const TRANSPORTS = /** @type {Record<string, {label: string, name: string}>} */ ({
  sse: { label: "UAMP", name: "UAMP over HTTP with server-sent events" },
  batch: { label: "UAMP", name: "UAMP over HTTP, in one batch" },
  delegate: { label: gettext("Delegated"), name: gettext("another agent") },
  completions: { label: gettext("Completions"), name: gettext("OpenAI Chat Completions") },
  responses: { label: gettext("Responses"), name: gettext("OpenAI Responses") },
  anthropic: { label: "Messages", name: "Anthropic Messages" },
  realtime: { label: gettext("Realtime"), name: gettext("OpenAI Realtime") },
  "ag-ui": { label: "AG-UI", name: "the Agent-User Interaction Protocol (AG-UI)" },
  a2a: { label: "A2A", name: "the Agent2Agent Protocol (A2A)" },
  acp: { label: "ACP", name: "the Agent Client Protocol (ACP)" },
});

const OWN = "websocket";
const known = (/** @type {string} */ transport) =>
  TRANSPORTS[transport] || { label: transport, name: transport };

/**
 * @param {string} [transport] empty for messages older than the column
 * @param {boolean} [isAnswer] whether the transport is that of its question
 */
export function transportBadge(transport, isAnswer = false) {
  if (!transport || transport === OWN) return "";
  const { label, name } = known(transport);
  return html` <span
    class="badge transport"
    title=${interpolate(
      isAnswer ? gettext("Asked through %(name)s") : gettext("Sent through %(name)s"),
      { name },
    )}
    data-testid="transport"
    data-transport=${transport}
    ><span class="visually-hidden"
      >${isAnswer ? gettext("asked through") : gettext("sent through")} </span
    >${label}</span
  >`;
}
