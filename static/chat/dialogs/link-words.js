/** Texts about the links of a chat. */

import { gettext, interpolate, ngettext } from "../words.js";

/**
 * @typedef {object} Link as REST lists it (docs/links.md)
 * @property {string} id
 * @property {string} created_by
 * @property {string} expires_at
 * @property {string} state
 * @property {string} [role]
 * @property {number|null} [most_uses]
 * @property {number} [used_count]
 * @property {boolean} [grows]
 * @property {number} [opened_count]
 */

export const ROLES = {
  member: gettext("Member"),
  admin: gettext("Admin"),
  owner: gettext("Owner"),
};

/** @param {number} days */
export const daysText = (days) =>
  interpolate(ngettext("%(n)s day", "%(n)s days", days), { n: days });
/** @param {number} uses */
export const usesText = (uses) =>
  interpolate(ngettext("%(n)s person", "%(n)s people", uses), { n: uses });

/** Who joined by an invite link, and in which role. @param {Link} link */
export function usedText({ role, used_count: used = 0, most_uses: most }) {
  const count = most
    ? interpolate(gettext("%(used)s of %(most)s joined"), { used, most })
    : interpolate(gettext("%(used)s joined"), { used });
  return role && role !== "member"
    ? `${count} · ${ROLES[/** @type {keyof typeof ROLES} */ (role)]}`
    : count;
}

/** How often a public link was opened, and its scope. @param {Link} link */
export function openedText({ opened_count: opened = 0, grows }) {
  const count = interpolate(ngettext("Opened %(n)s time", "Opened %(n)s times", opened), {
    n: opened,
  });
  return grows ? `${count} · ${gettext("later messages too")}` : count;
}
