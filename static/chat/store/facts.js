/** The lines between messages that describe changes of a chat. */

import { fullTime } from "../text/time.js";
import { gettext, interpolate, ngettext, pgettext } from "../words.js";

/** @typedef {import("../../uamp/types.js").Frame} Frame */

/**
 * A text for others, and variants for this user as the actor or the object.
 * @typedef {{others: string, byMe: string, toMe?: string}} Wording
 */

/** @type {Record<string, Wording>} */
const ROLES_GIVEN = {
  owner: {
    others: gettext("%(by)s made %(name)s an owner"),
    byMe: gettext("You made %(name)s an owner"),
    toMe: gettext("%(by)s made you an owner"),
  },
  admin: {
    others: gettext("%(by)s made %(name)s an admin"),
    byMe: gettext("You made %(name)s an admin"),
    toMe: gettext("%(by)s made you an admin"),
  },
  member: {
    others: gettext("%(by)s made %(name)s a member"),
    byMe: gettext("You made %(name)s a member"),
    toMe: gettext("%(by)s made you a member"),
  },
};
/** @type {Record<string, Wording>} */
const ROLES = {
  owner: { others: gettext("%(name)s is now an owner"), byMe: gettext("You're now an owner") },
  admin: { others: gettext("%(name)s is now an admin"), byMe: gettext("You're now an admin") },
  member: { others: gettext("%(name)s is now a member"), byMe: gettext("You're now a member") },
};
/** @type {Record<string, Wording>} */
const MEMBERSHIP_BY_SELF = {
  "participant.joined": { others: gettext("%(name)s joined"), byMe: gettext("You joined") },
  "participant.left": { others: gettext("%(name)s left"), byMe: gettext("You left") },
};
/** @type {Record<string, Wording>} */
const MEMBERSHIP = {
  "participant.joined": {
    others: gettext("%(by)s added %(name)s"),
    byMe: gettext("You added %(name)s"),
    toMe: gettext("%(by)s added you"),
  },
  "participant.left": {
    others: gettext("%(by)s removed %(name)s"),
    byMe: gettext("You removed %(name)s"),
    toMe: gettext("%(by)s removed you"),
  },
};
/** @type {Record<string, Wording>} */
const CALLS_WITHOUT_ANSWER = {
  declined: {
    others: gettext("%(name)s called, and the call was declined"),
    byMe: gettext("You called, and the call was declined"),
  },
  unanswered: {
    others: gettext("%(name)s called, and no one answered"),
    byMe: gettext("You called, and no one answered"),
  },
  cancelled: { others: gettext("%(name)s called"), byMe: gettext("You called") },
};
/** @type {Record<string, Wording>} */
const LINKS = {
  invite: {
    others: gettext("%(name)s created an invite link"),
    byMe: gettext("You created an invite link"),
  },
  grows: {
    others: gettext("%(name)s created a public link to this chat, including later messages"),
    byMe: gettext("You created a public link to this chat, including later messages"),
  },
  fixed: {
    others: gettext("%(name)s created a public link to this chat so far"),
    byMe: gettext("You created a public link to this chat so far"),
  },
};
/** @type {Record<string, Wording>} */
const LINKS_REVOKED = {
  invite: {
    others: gettext("%(name)s revoked an invite link"),
    byMe: gettext("You revoked an invite link"),
  },
  public: {
    others: gettext("%(name)s revoked a public link"),
    byMe: gettext("You revoked a public link"),
  },
};

/** @param {{others: string, byMe: string}} wording @param {boolean} isMe */
const wordingFor = ({ others, byMe }, isMe) => (isMe ? byMe : others);

/** @param {Frame} participant @param {string} me */
const isPerson = ({ kind, id }, me) => kind === "user" && id === me;

/**
 * The text about a change of a member, made by themselves or by another one.
 * @param {Frame} event
 * @param {string} me
 * @param {Wording} bySelf
 * @param {Wording} byOther
 */
function memberText({ participant, by }, me, bySelf, byOther) {
  const { name } = participant;
  const isMe = isPerson(participant, me);
  if (!by || isPerson(participant, by.id)) return interpolate(wordingFor(bySelf, isMe), { name });
  const text = isMe && byOther.toMe ? byOther.toMe : wordingFor(byOther, by.id === me);
  return interpolate(text, { by: by.name, name });
}

/** A call that is over: "alice’s call, 3 min, with bob". @param {Frame} event @param {string} me */
function callText({ started_by: by, participants = [], duration_ms: duration, reason }, me) {
  const name = by?.username ?? gettext("A former member");
  const isMine = by?.user_id === me;
  const unanswered = CALLS_WITHOUT_ANSWER[reason];
  if (unanswered) return interpolate(wordingFor(unanswered, isMine), { name });
  const minutes = Math.round((duration ?? 0) / 60_000);
  const time =
    minutes < 1
      ? gettext("less than a minute")
      : interpolate(ngettext("%(n)s min", "%(n)s min", minutes), { n: minutes });
  const others = participants
    .map((/** @type {{user_id: string, username: string}} */ { user_id: id, username }) =>
      id === me ? pgettext("with you", "you") : username,
    )
    .join(", ");
  const text = others
    ? wordingFor(
        {
          others: gettext("%(name)s's call, %(time)s, with %(others)s"),
          byMe: gettext("Your call, %(time)s, with %(others)s"),
        },
        isMine,
      )
    : wordingFor(
        {
          others: gettext("%(name)s's call, %(time)s"),
          byMe: gettext("Your call, %(time)s"),
        },
        isMine,
      );
  return interpolate(text, { name, time, others });
}

/** A link that was created, or revoked early. @param {Frame} event @param {string} me */
function linkText({ type, link, by }, me) {
  const isInvite = link.kind === "invite";
  if (type === "link.revoked") {
    if (!by)
      return isInvite
        ? gettext("An invite link was revoked because its creator can no longer invite people")
        : gettext("A public link was revoked because its creator can no longer share the chat");
    const revoked = LINKS_REVOKED[isInvite ? "invite" : "public"];
    return interpolate(wordingFor(revoked, by.id === me), { name: by.name });
  }
  const name = by?.name ?? gettext("A former member");
  const created = LINKS[isInvite ? "invite" : link.grows ? "grows" : "fixed"];
  return interpolate(wordingFor(created, by?.id === me), { name });
}

/** The source of the messages above. @param {Frame} event @param {string} me */
function forkText({ source, by, forked_at: at }, me) {
  const names = {
    title: source.title || gettext("a chat without a name"),
    name: by?.name ?? gettext("A former member"),
    date: fullTime(at),
  };
  const wording = {
    others: gettext("Forked from %(title)s by %(name)s, %(date)s"),
    byMe: gettext("Forked from %(title)s by you, %(date)s"),
  };
  return interpolate(wordingFor(wording, by?.id === me), names);
}

/**
 * The agents of the source that are missing in a fork; "" if all are in it.
 * @param {Frame} event
 * @returns {string}
 */
export function leftOutText({ type, agents_left_out: names = [] }) {
  if (type !== "chat.forked" || !names.length) return "";
  return interpolate(
    gettext("Not included, because the person who forked the chat may not use them: %(names)s"),
    { names: names.join(", ") },
  );
}

/**
 * Describe who came or went, and by whom; the end of a call or a link; the source of a fork; "" for
 * any other event.
 * @param {Frame} event
 * @param {string} me the id of this user
 * @returns {string}
 */
export function factText(event, me) {
  const { type, participant, message } = event;
  if (type === "agent.stopped") return message;
  if (type === "chat.forked") return forkText(event, me);
  if (type === "call.ended") return callText(event, me);
  if (type === "link.created" || type === "link.revoked") return linkText(event, me);
  if (!participant) return "";
  if (type === "participant.updated")
    return participant.kind === "user"
      ? memberText(event, me, ROLES[participant.role], ROLES_GIVEN[participant.role])
      : "";
  return type in MEMBERSHIP
    ? memberText(event, me, MEMBERSHIP_BY_SELF[type], MEMBERSHIP[type])
    : "";
}
