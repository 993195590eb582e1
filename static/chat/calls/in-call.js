/** The participants of a call as text. */

import { gettext, interpolate, locale } from "../words.js";

const list = new Intl.ListFormat(locale, { type: "conjunction" });

/**
 * "In a call: alice, bob and speaker", with its people before its agents.
 * @param {import("./types.js").Call} call
 */
export function inCallText({ members, agents = [] }) {
  const names = [
    ...members.map(({ username: name, state }) => ({ name, state })),
    ...agents.map(({ agent: name, state }) => ({ name, state })),
  ];
  const joined = names.filter(({ state }) => state === "joined").map(({ name }) => name);
  return interpolate(gettext("In a call: %(names)s"), { names: list.format(joined) });
}
