/**
 * Rules for notifications: which messages notify the user or count as unread, and the quiet hours.
 * Knows no document.
 */

/** Messages older than this when they arrive do not notify: the connection was lost for long. */
const NEWS_MS = 10 * 60_000;

/**
 * @typedef {import("../person/settings.js").Values} Values
 * @typedef {object} ChatLevel
 * @property {boolean} [muted]
 * @property {""|"all"|"mentions"|"none"} [notifications] "" for the level of the person
 *
 * @typedef {object} News
 * @property {boolean} isMention whether the message mentions the user
 * @property {number} at when it was written, in milliseconds
 * @property {boolean} isDirect whether the chat has only one other member
 * @property {boolean} [isFollowed] whether it is a reply in a thread that the user follows
 */

/** @param {ChatLevel} chat @param {Values} settings @returns {"all"|"mentions"|"none"} */
export const levelOf = (chat, settings) => chat.notifications || settings.notifications;

/**
 * Whether it is within the quiet hours, in the user's time zone.
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
    // This browser does not know the zone.
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
 * How a chat's unread messages count: a muted chat counts only mentions of the user, and nothing at
 * all if its notifications are off.
 * @param {ChatLevel & {unread: number, unread_mentions?: number}} chat
 * @returns {{shown: number, counts: boolean, mentions: number}} `mentions` of the user, shown
 *   beside the number
 */
export function unreadOf({ muted, notifications, unread, unread_mentions: all = 0 }) {
  const mentions = notifications === "none" ? 0 : Math.min(all, unread);
  if (!muted) return { shown: unread, counts: unread > 0, mentions };
  const counts = mentions > 0;
  return { shown: counts ? mentions : unread, counts, mentions };
}
