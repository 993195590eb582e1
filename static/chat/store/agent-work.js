/** The current activity of the agents in a chat, as shown to its members. Knows no document. */

import { gettext, interpolate } from "../words.js";

/**
 * @typedef {import("../../uamp/live-response.js").LiveResponse} LiveResponse
 * @typedef {import("../../uamp/live-response.js").ToolPart} ToolPart
 *
 * @typedef {"approval"|"payment"|"tool"|"thinking"|"writing"} WorkKind
 *
 * @typedef {object} Work
 * @property {string} agent its name
 * @property {WorkKind} kind
 * @property {string} tool its name, while one runs or is asked for
 * @property {number|null} percent the tool's progress, if known
 * @property {string} step "2/5", where the tool has steps
 * @property {string} userId of the person who has to allow the tool or to pay; "" when unknown
 * @property {string} waitsFor whose payment is missing, in the server's words; "" for the user's
 *   own
 */

/**
 * Activities by significance: of an agent with several answers, the first is shown.
 * @type {WorkKind[]}
 */
const ORDER = ["approval", "payment", "tool", "writing", "thinking"];

/**
 * The progress of a tool in percent, or null when unknown.
 * @param {NonNullable<ToolPart["progress"]>} progress
 */
export const shareOf = ({ percent, step, total_steps: total }) =>
  percent ?? (total ? (100 * (step || 0)) / total : null);

/**
 * @param {LiveResponse} response
 * @param {{responseId: string, name: string, userId: string, state: string}[]} approvals
 * @param {{responseId: string}[]} payments the user's own open payments
 * @returns {Work}
 */
function workOf({ id, agent, parts, waitsFor, waitsForUser }, approvals, payments) {
  /** @type {Work} */
  const work = { agent, kind: "thinking", tool: "", percent: null, step: "", userId: "", waitsFor };
  const approval = approvals.find((one) => one.responseId === id && one.state !== "closed");
  if (approval) return { ...work, kind: "approval", tool: approval.name, userId: approval.userId };
  if (waitsFor || payments.some((one) => one.responseId === id))
    return { ...work, kind: "payment", userId: waitsForUser };
  const last = parts.at(-1);
  if (last?.kind === "tool" && !last.done) {
    const { percent, step, total_steps: total } = last.progress ?? {};
    const share = shareOf({ percent, step, total_steps: total });
    return {
      ...work,
      kind: "tool",
      tool: last.name,
      percent: share === null ? null : Math.round(share),
      step: total ? `${step || 0}/${total}` : "",
    };
  }
  return last?.kind === "text" || last?.kind === "media" ? { ...work, kind: "writing" } : work;
}

/**
 * The most significant activity of each answering agent.
 * @param {{responses: Map<string, LiveResponse>, approvals: {list: any[]}, payments: {list:
 *   any[]}}} session
 * @returns {Work[]} one for each agent
 */
export function worksOf({ responses, approvals, payments }) {
  /** @type {Map<string, Work>} */
  const works = new Map();
  for (const response of responses.values()) {
    if (response.status !== "running" || !response.agent) continue;
    const work = workOf(response, approvals.list, payments.list);
    const known = works.get(work.agent);
    if (!known || ORDER.indexOf(work.kind) < ORDER.indexOf(known.kind)) works.set(work.agent, work);
  }
  return Array.from(works.values());
}

/**
 * Whose payment an answer waits for.
 * @param {string} waitsFor in the server's words; "" for the user's own
 * @param {string} name of the person who has to pay; "" when unknown
 */
export function paymentText(waitsFor, name) {
  if (!waitsFor) return gettext("Waiting for your payment");
  return name ? interpolate(gettext("Waiting for %(name)s's payment"), { name }) : waitsFor;
}

/**
 * @param {Work} work
 * @param {(userId: string) => string} nameOf a person of the chat; "" when unknown
 */
export function workText({ kind, tool, percent, step, userId, waitsFor }, nameOf) {
  if (kind === "approval") {
    const name = nameOf(userId);
    return name
      ? interpolate(gettext("Waiting for %(name)s to approve %(tool)s"), { name, tool })
      : interpolate(gettext("Waiting for approval of %(tool)s"), { tool });
  }
  if (kind === "payment") return paymentText(waitsFor, nameOf(userId));
  if (kind === "thinking") return gettext("Thinking…");
  if (kind === "writing") return gettext("Writing…");
  if (percent === null) return interpolate(gettext("Running %(tool)s"), { tool });
  return step
    ? interpolate(gettext("Running %(tool)s, step %(step)s (%(percent)s%%)"), {
        tool,
        step,
        percent,
      })
    : interpolate(gettext("Running %(tool)s (%(percent)s%%)"), { tool, percent });
}
