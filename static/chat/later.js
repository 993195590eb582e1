/**
 * The parts of the page that open by a click or a key, the panels beside the chat, and the handling
 * of closed pages by the browser: `deferred.js` loads them.
 */

import { api, client } from "./context.js";
import { on, part } from "./dom.js";
import "./actions/emoji-picker.js";
import "./actions/message-dialogs.js";
import "./actions/message-menu.js";
import "./actions/undo-bar.js";
import "./calls/call-dialog.js";
import "./panels/chat-menu.js";
import "./panels/members-panel.js";
import "./panels/thread-panel.js";
import "./dialogs/chat-settings-dialog.js";
import "./dialogs/links-dialog.js";
import "./dialogs/media-viewer.js";
import "./dialogs/member-dialog.js";
import "./dialogs/message-console.js";
import "./dialogs/new-chat-dialog.js";
import "./dialogs/payer-dialog.js";
import "./dialogs/verify-dialog.js";
import "./keyboard/palette.js";
import "./keyboard/shortcuts-dialog.js";
import { beNotified } from "./notifications/push.js";
import { registerWorker } from "./offline/worker.js";
import "./person/profile-card.js";
import "./person/settings-dialog.js";
import "./search/search-dialog.js";
import "./search/threads-dialog.js";

/** @typedef {import("./store/chat.js").Chat} Chat */
/** @typedef {import("./store/chat.js").Participant} Participant */
/** @typedef {import("./store/entry.js").Entry} Entry */

on("new-chat", () => part("new-chat-dialog").startChat());
on("add-members", (/** @type {Chat} */ chat) => part("new-chat-dialog").addTo(chat));
on("open-member", (/** @type {{chat: Chat, member: Participant}} */ { chat, member }) =>
  part("member-dialog").open(chat, member),
);
on("open-profile", (/** @type {import("./person/profile-card.js").Subject} */ subject) =>
  part("profile-card").open(subject),
);
on("ask-to-call", (/** @type {Chat} */ chat) => part("call-dialog").open(chat));
on("chat-settings", (/** @type {Chat} */ chat) => part("chat-settings-dialog").open(chat));
on("share-chat", (/** @type {Chat} */ chat) => part("links-dialog").open(chat));
on("verify-chat", (/** @type {Chat} */ chat) => part("verify-dialog").open(chat));
on("set-payer", (/** @type {Chat} */ chat) => part("payer-dialog").open(chat));
on("message-menu", (/** @type {Entry} */ entry, origin) =>
  part("message-menu").open(origin, entry),
);
on("chat-menu", (/** @type {Chat} */ chat, origin) => part("chat-menu").open(origin, chat));
on("react", (/** @type {Entry} */ entry, origin) => part("emoji-picker").open(origin, entry));
on("pick-emoji", (/** @type {(emoji: string) => void} */ take, origin) =>
  part("emoji-picker").open(origin, null, take),
);
on("delete-message", (/** @type {Entry} */ entry, origin) =>
  part("delete-dialog").open(origin, entry),
);
on("show-revisions", (/** @type {Entry} */ entry, origin) =>
  part("revisions-dialog").open(origin, entry),
);
on("show-frames", (/** @type {Entry} */ entry) => part("message-console").open(entry));
registerWorker(client).then(() => beNotified(api));
