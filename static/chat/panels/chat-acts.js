/** The user's acts on a chat in the list: pin, mute, archive, mark as unread, leave, delete. */

import { isApiError } from "../api.js";
import { api, me, store } from "../context.js";
import { announce } from "../dom.js";
import { gettext, interpolate } from "../words.js";

/**
 * @typedef {import("../store/chat.js").Chat} Chat
 * @typedef {import("../actions/action-menu.js").Action<Chat>} ChatAction
 */

/** @param {Chat} chat */
const pathOf = ({ id }) => `/chats/${encodeURIComponent(id)}`;

/**
 * Do something that the server may refuse, and announce the outcome.
 * @param {string} done
 * @param {() => Promise<unknown>} work
 */
async function attempt(done, work) {
  try {
    await work();
    announce(done);
  } catch (error) {
    if (!isApiError(error)) throw error;
    announce(error.message);
  }
}

/**
 * @param {Chat} chat
 * @param {{pinned?: boolean, archived?: boolean, marked_unread?: boolean}} values
 */
const place = (chat, values) =>
  api.send("PUT", `${pathOf(chat)}/place`, values).then((read) => store.take(read));

/** Clear the unread mark of a chat when it is opened. @param {string} chatId */
export function seen(chatId) {
  const chat = store.get(chatId);
  if (chat?.marked_unread) void attempt("", () => place(chat, { marked_unread: false }));
}

/** @param {Chat} chat */
const membership = (chat) =>
  chat.participants.find(({ kind, id }) => kind === "user" && String(id) === me.id);

/** @param {Chat} chat */
async function leave(chat) {
  const own = membership(chat);
  if (
    !own ||
    !confirm(
      interpolate(gettext("Leave %(name)s? You will no longer see its messages."), {
        name: store.nameOf(chat),
      }),
    )
  )
    return;
  await attempt(gettext("You left the chat."), async () => {
    await api.send("DELETE", `${pathOf(chat)}/participants/${own.participant_id}`);
    dispatchEvent(new CustomEvent("left-chat", { detail: chat.id }));
    await store.refresh();
  });
}

/** @param {Chat} chat */
async function remove(chat) {
  if (
    !confirm(
      interpolate(
        gettext("Delete %(name)s for everyone? Its messages and files can't be recovered."),
        { name: store.nameOf(chat) },
      ),
    )
  )
    return;
  await attempt(gettext("Chat deleted."), async () => {
    await api.send("DELETE", pathOf(chat));
    dispatchEvent(new CustomEvent("left-chat", { detail: chat.id }));
    await store.refresh();
  });
}

/** @type {ChatAction[]} in their order in the menu */
export const CHAT_ACTIONS = [
  {
    name: "pin-chat",
    icon: "pin",
    label: ({ pinned }) => (pinned ? gettext("Unpin") : gettext("Pin")),
    run: (chat) =>
      attempt(chat.pinned ? gettext("Unpinned.") : gettext("Pinned."), () =>
        place(chat, { pinned: !chat.pinned }),
      ),
  },
  {
    name: "mute-chat",
    icon: "muted",
    label: ({ muted }) => (muted ? gettext("Unmute") : gettext("Mute")),
    run: (chat) =>
      attempt(chat.muted ? gettext("Unmuted.") : gettext("Muted."), () =>
        api
          .send("PUT", `${pathOf(chat)}/mute`, { muted: !chat.muted })
          .then((read) => store.take(read)),
      ),
  },
  {
    name: "mark-unread",
    icon: "message",
    label: () => gettext("Mark as unread"),
    isOffered: ({ unread, marked_unread: marked }) => !unread && !marked,
    run: (chat) =>
      attempt(gettext("Marked as unread."), () => place(chat, { marked_unread: true })),
  },
  {
    name: "archive-chat",
    icon: "down",
    label: ({ archived }) => (archived ? gettext("Unarchive") : gettext("Archive")),
    run: (chat) =>
      attempt(chat.archived ? gettext("Unarchived.") : gettext("Archived."), () =>
        place(chat, { archived: !chat.archived }),
      ),
  },
  {
    name: "verify-chat",
    icon: "seal",
    label: () => gettext("Verify…"),
    // The keys of its answers are those of another server.
    isOffered: ({ home }) => !home,
    run: (chat, origin) =>
      origin.dispatchEvent(new CustomEvent("verify-chat", { bubbles: true, detail: chat })),
  },
  {
    name: "leave-chat",
    icon: "back",
    label: () => gettext("Leave…"),
    isDangerous: true,
    run: leave,
  },
  {
    name: "delete-chat",
    icon: "bin",
    label: () => gettext("Delete for everyone…"),
    isDangerous: true,
    isOffered: (chat) => membership(chat)?.role === "owner",
    run: remove,
  },
];

/**
 * The section of the list that a chat belongs to.
 * @param {Chat} chat @returns {"pinned"|"people"|"groups"|"agents"|"archived"}
 */
export function sectionOf(chat) {
  if (chat.archived) return "archived";
  if (chat.pinned) return "pinned";
  const others = store.others(chat);
  if (others.length > 0 && others.every(({ kind }) => kind === "agent")) return "agents";
  return !chat.title && others.length === 1 ? "people" : "groups";
}
