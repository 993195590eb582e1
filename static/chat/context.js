/** Singletons of a page: the signed-in user, the API, the client, the chats. */

import { UampClient } from "../uamp/client.js";
import { openOutbox } from "../uamp/outbox.js";
import { Api, isApiError } from "./api.js";
import { Calls } from "./calls/calls.js";
import { ChatStore } from "./chat-store.js";
import { CheckedLogs } from "./offline/checked-logs.js";
import { OfflineChats, forgetOthers } from "./offline/offline-chats.js";
import { people } from "./person/looks.js";
import { Settings } from "./person/settings.js";
import { Drafts } from "./store/drafts.js";
import { LastChat } from "./store/last-chat.js";
import { REDUCERS, emptyChat } from "./store/open-chat.js";
import { Store } from "./store/store.js";

/**
 * @type {{me: {id: string, username: string} & import("./person/looks.js").Profile, settings:
 *   import("./person/settings.js").Values, chat_id: string, upload_bytes: number, link_cards:
 *   boolean, needs_model: boolean, may_connect_model: boolean, transcripts: boolean, previews:
 *   string[], languages: [string, string][], csrf_cookie: string, agent_descriptions:
 *   Record<string, string>}} the descriptions of the demo's agents in the user's language
 */
export const start = JSON.parse(document.getElementById("start")?.textContent ?? "");
export const me = start.me;
people.learn([me]);
// This must precede reading what they wrote.
await forgetOthers(me.id);
/** The copies that this device keeps for offline use. */
export const offlineChats = new OfflineChats(me.id);
export const api = new Api(start.csrf_cookie);
export const client = new UampClient({
  userId: me.id,
  outbox: await openOutbox(me.id),
  ticket: async () => (await api.post("/tickets")).ticket,
});
export const settings = new Settings(api, start.settings, client);
export const drafts = new Drafts(localStorage, me.id);
export const lastChat = new LastChat(localStorage, me.id);
export const checkedLogs = new CheckedLogs(localStorage, me.id);
/** The state of the open chat, rendered by its views. */
export const page = new Store(emptyChat(me.id, "", "", me.username), REDUCERS);
/** The state of the open thread, rendered by its views. */
export const threadPage = new Store(emptyChat(me.id, "", "", me.username), REDUCERS);
/**
 * The state behind a view: the thread's inside its panel, else the chat's.
 * @param {Element} view
 */
export const pageAt = (view) => (view.closest("thread-panel") ? threadPage : page);
/** The state in which a message is shown. @param {import("./store/entry.js").Entry} entry */
export const pageOf = (entry) =>
  entry.thread && entry.thread === threadPage.state.thread ? threadPage : page;
export const store = new ChatStore(api, client, me, offlineChats);
/**
 * The name of a person in a chat.
 * @param {string} chatId @param {string} userId
 * @returns {string} "" for a person who is not in the chat
 */
export function memberName(chatId, userId) {
  const member = store
    .get(chatId)
    ?.participants.find(({ kind, id }) => kind === "user" && String(id) === userId);
  return member ? people.nameOf(member.name) : "";
}
export const calls = new Calls({ client, store, api, me });

/**
 * Check whether the user is still signed in; if not, stop trying and say so. A refused handshake
 * looks like any lost connection, and a chat without membership like a missing one; only REST
 * distinguishes them.
 * @returns {Promise<boolean>} false when signed out
 */
export async function checkSignedIn() {
  try {
    await api.get("/me");
  } catch (error) {
    if (!isApiError(error)) throw error;
    if (error.status === 401 || error.status === 403) {
      client.refuse();
      return false;
    }
  }
  return true;
}
