/**
 * Announces the events of the open chat to screen readers: the beginnings and ends of answers, and
 * requests by agents.
 */

import { outcomeText } from "../cards/approval-card.js";
import { announce } from "../dom.js";
import { beginningOf } from "../markdown/plain.js";
import { people } from "../person/looks.js";
import { gettext, interpolate } from "../words.js";

/** The maximum length of an announced text. */
const READ_CHARS = 500;

/** @type {Record<string, string>} */
const ENDS = {
  completed: gettext("%(agent)s answered: %(text)s"),
  cancelled: gettext("%(agent)s: answer stopped"),
  failed: gettext("%(agent)s: answer failed"),
};
/** @type {Record<string, string>} */
const REASONED = {
  ...ENDS,
  cancelled: gettext("%(agent)s: answer stopped by %(reason)s"),
  failed: gettext("%(agent)s: answer failed. %(reason)s"),
};

/** Announces everything once. */
export class Announcements {
  constructor() {
    this._said = new Set();
  }

  /** @param {import("../store/entry.js").Entry} entry a message that arrived from another person */
  message({ name, content }) {
    announce(
      interpolate(gettext("%(name)s: %(text)s"), {
        name: people.nameOf(name),
        text: beginningOf(content, READ_CHARS) || gettext("sent a file"),
      }),
    );
  }

  /** @param {{id: string, agent?: string}} response a running answer */
  answering({ id, agent }) {
    if (!agent || this._said.has(id)) return;
    this._said.add(id);
    announce(interpolate(gettext("%(name)s is answering"), { name: agent }));
  }

  /**
   * @param {import("../../uamp/live-response.js").LiveResponse} response that ended; its reason
   *   says who stopped it, or why it failed
   */
  ended({ id, agent, status, reason, parts }) {
    if (!this._said.has(id)) return;
    const content = parts.map((part) => (part.kind === "text" ? part.text : "")).join("\n");
    const text = beginningOf(content, READ_CHARS) || gettext("No text");
    announce(
      interpolate((reason ? REASONED : ENDS)[status], {
        agent: agent || gettext("Agent"),
        reason: reason ?? "",
        text,
      }),
    );
  }

  /**
   * @param {import("../../uamp/approvals.js").Approval[]} list
   * @param {import("../../uamp/approvals.js").Approval|null} asked the new one, if any
   */
  approvals(list, asked) {
    for (const approval of list) {
      if (approval.state !== "closed" || this._said.has(approval.key)) continue;
      this._said.add(approval.key);
      announce(outcomeText(approval));
    }
    if (!asked) return;
    // It may have been over before.
    this._said.delete(asked.key);
    announce(
      interpolate(
        gettext("%(agent)s asks to use %(name)s. Allow or deny it at the end of the chat."),
        { agent: asked.agent, name: asked.name },
      ),
    );
  }
}
