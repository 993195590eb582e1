/** What changed in a chat, in words: the lines between its messages. */

import { fullTime } from "../text/time.js";
import { gettext, interpolate, ngettext } from "../words.js";

/** @typedef {import("../../uamp/types.js").Frame} Frame */

/** @type {Record<string, string>} */
const ROLES_GIVEN = {
  owner: gettext("%(by)s made %(name)s an owner"),
  admin: gettext("%(by)s made %(name)s an admin"),
  member: gettext("%(by)s made %(name)s a member"),
};
/** @type {Record<string, string>} */
const ROLES = {
  owner: gettext("%(name)s is an owner now"),
  admin: gettext("%(name)s is an admin now"),
  member: gettext("%(name)s is a member now"),
};
/** @type {Record<string, string>} */
const CALLS_WITHOUT_ANSWER = {
  declined: gettext("%(name)s called, and no one picked up"),
  unanswered: gettext("%(name)s called, and no one answered"),
  cancelled: gettext("%(name)s called"),
};

/** @param {{name: string, role: string}} participant @param {{name: string}|undefined} by */
const roleText = ({ name, role }, by) =>
  by ? interpolate(ROLES_GIVEN[role], { by: by.name, name }) : interpolate(ROLES[role], { name });

/** A call that is over: "alice’s call, 3 min, with bob". @param {Frame} event */
function callText({ started_by: by, participants = [], duration_ms: duration, reason }) {
  const name = by?.username ?? gettext("A former member");
  if (CALLS_WITHOUT_ANSWER[reason]) return interpolate(CALLS_WITHOUT_ANSWER[reason], { name });
  const minutes = Math.round((duration ?? 0) / 60_000);
  const time =
    minutes < 1
      ? gettext("less than a minute")
      : interpolate(ngettext("%(n)s min", "%(n)s min", minutes), { n: minutes });
  const others = participants
    .map((/** @type {{username: string}} */ { username }) => username)
    .join(", ");
  return interpolate(
    others
      ? gettext("%(name)s’s call, %(time)s, with %(others)s")
      : gettext("%(name)s’s call, %(time)s"),
    { name, time, others },
  );
}

/** A link that was made, or that ended before its time. @param {Frame} event */
function linkText({ type, link, by }) {
  const isInvite = link.kind === "invite";
  if (type === "link.revoked") {
    if (!by)
      return isInvite
        ? gettext("An invite link ended because its creator lost the right to invite")
        : gettext("A public link ended because its creator lost the right to share");
    return interpolate(
      isInvite
        ? gettext("%(name)s revoked an invite link")
        : gettext("%(name)s revoked a public link"),
      { name: by.name },
    );
  }
  const name = by?.name ?? gettext("A former member");
  if (isInvite) return interpolate(gettext("%(name)s created an invite link"), { name });
  const shown = link.grows
    ? gettext("%(name)s created a public link to this chat, including later messages")
    : gettext("%(name)s created a public link to this chat so far");
  return interpolate(shown, { name });
}

/** Where the messages above come from. @param {Frame} event */
function forkText({ source, by, forked_at: at }) {
  const names = {
    title: source.title || gettext("a chat without a name"),
    name: by?.name ?? gettext("A former member"),
    date: fullTime(at),
  };
  return interpolate(gettext("Forked from %(title)s by %(name)s, %(date)s"), names);
}

/**
 * Who of the source is not in a fork; "" where all its agents are.
 * @param {Frame} event
 * @returns {string}
 */
export function leftOutText({ type, agents_left_out: names = [] }) {
  if (type !== "chat.forked" || !names.length) return "";
  return interpolate(
    gettext("Left out, because the person who forked the chat may not use them: %(names)s"),
    { names: names.join(", ") },
  );
}

/**
 * Who came or went, and by whom; what became of a call or a link; where a chat comes from; "" for
 * any other event.
 * @param {Frame} event
 * @returns {string}
 */
export function factText(event) {
  const { type, participant, by, message } = event;
  if (type === "agent.stopped") return message;
  if (type === "chat.forked") return forkText(event);
  if (type === "call.ended") return callText(event);
  if (type === "link.created" || type === "link.revoked") return linkText(event);
  if (!participant) return "";
  const { name } = participant;
  if (type === "participant.updated")
    return participant.kind === "user" ? roleText(participant, by) : "";
  const isBySelf = !by || (participant.kind === "user" && participant.id === by.id);
  const names = { name, by: by?.name ?? "" };
  if (type === "participant.joined")
    return interpolate(
      isBySelf ? gettext("%(name)s joined") : gettext("%(by)s added %(name)s"),
      names,
    );
  if (type === "participant.left")
    return interpolate(
      isBySelf ? gettext("%(name)s left") : gettext("%(by)s removed %(name)s"),
      names,
    );
  return "";
}
