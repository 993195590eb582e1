/** Formats times in the user's language and time zone. */

import { gettext, locale } from "../words.js";

const DAY_MS = 86_400_000;
const clock = new Intl.DateTimeFormat(locale, { hour: "numeric", minute: "2-digit" });
const weekday = new Intl.DateTimeFormat(locale, { weekday: "long" });
const date = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "short" });

/** @param {number} ms */
export const clockTime = (ms) => clock.format(ms);
const day = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });
/** @param {number} ms */
export const fullDate = (ms) => day.format(ms);
/** @param {number} ms */
export const fullTime = (ms) => full.format(ms);

/** @param {number} ms */
const startOfDay = (ms) => new Date(ms).setHours(0, 0, 0, 0);

/** Days between two times, by the calendar (a day may have 23 or 25 hours). @param {number} ms */
export function daysAgo(ms, now = Date.now()) {
  return Math.round((startOfDay(now) - startOfDay(ms)) / DAY_MS);
}

/** "Today", "Yesterday", "Monday", "3 May". @param {number} ms */
export function dayName(ms) {
  const days = daysAgo(ms);
  if (days === 0) return gettext("Today");
  if (days === 1) return gettext("Yesterday");
  return days > 1 && days < 7 ? weekday.format(ms) : date.format(ms);
}

const ago = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" });

/** "just now", "2 min. ago", "3 hr. ago", else the day. @param {number} ms */
export function agoText(ms, now = Date.now()) {
  const minutes = Math.round((now - ms) / 60_000);
  if (minutes < 1) return gettext("just now");
  if (minutes < 60) return ago.format(-minutes, "minute");
  return minutes < 12 * 60 ? ago.format(-Math.round(minutes / 60), "hour") : dayName(ms);
}

/** The time of today, else the day; for lists. @param {number} ms */
export const shortTime = (ms) => (daysAgo(ms) === 0 ? clockTime(ms) : dayName(ms));
