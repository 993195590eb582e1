/**
 * Which messages notify a person, which count as unread, and when it is quiet. Knows no document.
 */

/** A message that is older when it arrives is no news: the connection was lost for long. */
const NEWS_MS = 10 * 60_000;

/**
 * @typedef {import("../person/settings.js").Values} Values
 * @typedef {object} ChatLevel
 * @property {boolean} [muted]
 * @property {""|"all"|"mentions"|"none"} [notifications] "" for the level of the person
 *
 * @typedef {object} News
 * @property {boolean} isMention whether the message mentions the person
 * @property {number} at when it was written, in milliseconds
 * @property {boolean} isDirect whether only one other member is in the chat
 * @property {boolean} [isFollowed] whether it is a reply in a thread that the person follows
 */

/** @param {ChatLevel} chat @param {Values} settings @returns {"all"|"mentions"|"none"} */
export const levelOf = (chat, settings) => chat.notifications || settings.notifications;

/**
 * Whether it is quiet now, by the clock of the person's time zone.
 * @param {Values} settings @param {Date} now
 */
export function isQuiet({ quiet_from: from, quiet_until: until, time_zone: zone }, now) {
  if (!from || !until) return false;
  let time;
  try {
    const parts = new Intl.DateTimeFormat("en-GB", {
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
      timeZone: zone,
    }).formatToParts(now);
    const part = (/** @type {string} */ type) =>
      parts.find((one) => one.type === type)?.value ?? "00";
    time = `${part("hour")}:${part("minute")}`;
  } catch {
    // A zone that this browser does not know.
    return false;
  }
  return from < until ? from <= time && time < until : time >= from || time < until;
}

/**
 * Whether a message of another member notifies.
 * @param {ChatLevel} chat @param {Values} settings @param {News} news @param {Date} now
 */
export function notifies(chat, settings, { isMention, at, isDirect, isFollowed = false }, now) {
  if (chat.muted || now.getTime() - at > NEWS_MS || isQuiet(settings, now)) return false;
  const level = levelOf(chat, settings);
  if (level === "mentions") return isDirect || isMention || isFollowed;
  return level === "all";
}

/**
 * How the unread messages of a chat count: a muted chat counts only where the person is mentioned,
 * and not at all where they want no notifications of it.
 * @param {ChatLevel & {unread: number, unread_mentions?: number}} chat
 * @returns {{shown: number, counts: boolean, mentions: number}} `mentions` of the person, shown
 *   beside the number
 */
export function unreadOf({ muted, notifications, unread, unread_mentions: all = 0 }) {
  const mentions = notifications === "none" ? 0 : Math.min(all, unread);
  if (!muted) return { shown: unread, counts: unread > 0, mentions };
  const counts = mentions > 0;
  return { shown: counts ? mentions : unread, counts, mentions };
}
