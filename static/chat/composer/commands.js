/** The commands that begin with "/", which run instead of being sent. */

/**
 * @typedef {object} Command
 * @property {string} name
 * @property {string} note
 * @property {string} [argument] the text after the name
 * @property {(place: HTMLElement, argument: string) => Promise<string>|string} run the result is
 *   shown to the user; "" for none. An event from `place` bubbles through the page
 */

import { mayPin, pin } from "../actions/acts.js";
import { isApiError } from "../api.js";
import { api, page, store } from "../context.js";
import { gettext, interpolate } from "../words.js";

/** @param {string} type @returns {(place: HTMLElement) => string} */
const fires = (type) => (place) => {
  place.dispatchEvent(new CustomEvent(type, { bubbles: true }));
  return "";
};

/** Add a member by name: an agent available to the user, else a person. @param {string} name */
async function invite(name) {
  const { chatId } = page.state;
  const wanted = name.replace(/^@/, "");
  if (!wanted) return gettext("Add the name of a person or an agent, for example /invite bob.");
  const agents = await api.get("/agents");
  const isAgent = (agents.data || agents).some(
    (/** @type {{name: string}} */ agent) => agent.name === wanted,
  );
  const { invitation } = await api.post(`/chats/${encodeURIComponent(chatId)}/participants`, {
    [isAgent ? "agent" : "user"]: wanted,
  });
  if (invitation) return interpolate(gettext("%(name)s is invited."), { name: wanted });
  await store.reload(chatId);
  return interpolate(gettext("%(name)s is now in the chat."), { name: wanted });
}

/** Pin the message being replied to, else the newest one. */
async function pinMessage() {
  const { entries, replyTo } = page.state;
  const entry = replyTo || entries.findLast(({ deletedAt }) => !deletedAt);
  if (!entry) return gettext("There's no message to pin yet.");
  if (!mayPin()) return gettext("Only owners can pin messages in this chat.");
  await pin(entry, true);
  return interpolate(gettext("%(name)s's message is pinned."), { name: entry.name });
}

/** @type {Command[]} */
export const COMMANDS = [
  { name: "help", note: gettext("Shortcuts and commands"), run: fires("show-shortcuts") },
  {
    name: "invite",
    note: gettext("Add a person or an agent"),
    argument: "name",
    run: (_place, name) => invite(name),
  },
  { name: "members", note: gettext("Show or hide the members"), run: fires("toggle-members") },
  { name: "new", note: gettext("Start a chat"), run: fires("new-chat") },
  { name: "pin", note: gettext("Pin the quoted or newest message"), run: pinMessage },
  { name: "search", note: gettext("Search your chats"), run: fires("open-search") },
];

/**
 * Parse a command. Paths ("/etc/hosts") and texts that begin with a space are not commands.
 * @param {string} text @returns {{name: string, argument: string, command: Command|undefined}|null}
 */
export function commandOf(text) {
  const match = /^\/([a-z]+)(?:\s+([^\n]*))?$/.exec(text.trimEnd());
  if (!match) return null;
  const [, name, argument = ""] = match;
  return {
    name,
    argument: argument.trim(),
    command: COMMANDS.find((command) => command.name === name),
  };
}

/**
 * Run a command.
 * @param {NonNullable<ReturnType<typeof commandOf>>} called @param {HTMLElement} place
 * @returns {Promise<string>} the text to show to the user; "" for none
 */
export async function outcomeOf({ name, argument, command }, place) {
  if (!command)
    return interpolate(
      gettext(
        "Unknown command /%(name)s. Type /help for a list, or start with a space to send it as text.",
      ),
      { name },
    );
  try {
    return await command.run(place, argument);
  } catch (error) {
    if (!isApiError(error)) throw error;
    return error.message;
  }
}
