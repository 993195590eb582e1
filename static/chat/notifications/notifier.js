/**
 * Notifications of this browser for messages in chats that the user is not looking at, shown by
 * only one of the open tabs.
 *
 * Tabs coordinate by Web Locks: the tab that holds the notifier's lock notifies, and a tab that
 * shows a chat holds the lock of that chat meanwhile. Browsers without locks have no notifications
 * either: both need a secure address (https, or localhost).
 */

import { notifies } from "./rules.js";
import { beginningOf } from "../markdown/plain.js";
import { gettext, interpolate } from "../words.js";

const BODY_CHARS = 160;
/** As in `static/offline/service-worker.js`: the messages that it shows. */
const pushes = new BroadcastChannel("uamp.pushes");
const DISMISSED = "uamp.notifications.asked";

/** @typedef {import("../person/settings.js").Settings} Settings */

/** @returns {"unsupported"|"default"|"denied"|"granted"} the permission in this browser */
export function permission() {
  if (!("Notification" in window) || !navigator.locks) return "unsupported";
  return Notification.permission;
}

/**
 * Ask for permission, after a click by the user.
 * @returns {Promise<"unsupported"|"default"|"denied"|"granted">}
 */
export async function askPermission() {
  if (permission() === "default") await Notification.requestPermission();
  forgetQuestion();
  dispatchEvent(new Event("notification-permission"));
  return permission();
}

/** Whether the page may ask unprompted: only until the user answers. */
export const mayAsk = () => permission() === "default" && !localStorage.getItem(DISMISSED);

/** Stop asking unprompted. */
export function forgetQuestion() {
  localStorage.setItem(DISMISSED, "1");
}

export class Notifier {
  /**
   * @param {any} store of the chats; fires `arrived`
   * @param {Settings} settings
   * @param {{id: string, username: string}} me
   * @param {{nameOf: (username: string) => string}} people
   */
  constructor(store, settings, me, people) {
    this._store = store;
    this._settings = settings;
    this._me = me;
    this._people = people;
    this._isLeader = false;
    this._chatId = "";
    this._viewing = new AbortController();
    /** @type {{messageId: string, shown: Notification}|null} the last one */
    this._last = null;
    if (!navigator.locks) return;
    pushes.addEventListener("message", ({ data }) => {
      if (this._last?.messageId === data) this._last?.shown.close();
    });
    navigator.serviceWorker?.addEventListener("message", ({ data }) => {
      if (data?.type === "open-message")
        dispatchEvent(new CustomEvent("open-message", { detail: data }));
    });
    // The lock is held until the tab closes; another tab then gets it.
    navigator.locks.request(`uamp.notifier.${me.id}`, () => {
      this._isLeader = true;
      return new Promise(() => {});
    });
    for (const [target, type] of /** @type {[EventTarget, string][]} */ ([
      [document, "visibilitychange"],
      [window, "focus"],
      [window, "blur"],
    ])) {
      target.addEventListener(type, () => this._look());
    }
    store.addEventListener("arrived", (/** @type {CustomEvent} */ { detail }) =>
      this._arrived(detail),
    );
  }

  /** @param {string} chatId of the chat that is open; "" for none */
  show(chatId) {
    this._chatId = chatId;
    this._look();
  }

  /** @param {string} chatId */
  _lockOf(chatId) {
    return `uamp.viewing.${this._me.id}.${chatId}`;
  }

  /** Hold the lock of the chat visible in this tab, and no other. */
  _look() {
    if (!navigator.locks) return;
    this._viewing.abort();
    this._viewing = new AbortController();
    const { signal } = this._viewing;
    if (!this._chatId || document.hidden || !document.hasFocus()) return;
    const held = new Promise((resolve) =>
      signal.addEventListener("abort", resolve, { once: true }),
    );
    navigator.locks
      .request(this._lockOf(this._chatId), { mode: "shared", signal }, () => held)
      .catch(() => {
        // The lock was not granted before the user moved on.
      });
  }

  /** @param {{chat: any, message: any}} news */
  async _arrived({ chat, message }) {
    if (!this._isLeader || permission() !== "granted") return;
    const others = this._store.others(chat);
    const news = {
      isMention: this._isMention(message),
      at: message.created_at,
      isDirect: others.length === 1,
      isFollowed: Boolean(message.is_followed),
    };
    if (!notifies(chat, this._settings.values, news, new Date())) return;
    const { held = [] } = await navigator.locks.query();
    if (held.some(({ name }) => name === this._lockOf(chat.id))) return;
    this._notify(chat, message);
  }

  /** @param {{mentions?: string[]}} message */
  _isMention({ mentions }) {
    return Boolean(mentions?.includes(this._me.id));
  }

  /** @param {any} chat @param {any} message */
  _notify(chat, message) {
    const { notification_text: hasText, notification_sound: hasSound } = this._settings.values;
    const name = this._store.nameOf(chat);
    const author =
      message.sender_kind === "agent" ? message.name : this._people.nameOf(message.name);
    const isDirect = this._store.others(chat).length === 1;
    const isReply = Boolean(message.thread && !message.also_in_chat);
    const title = !hasText
      ? gettext("New message")
      : isReply
        ? interpolate(gettext("%(name)s replied in a thread in %(chat)s"), {
            name: author,
            chat: name,
          })
        : isDirect
          ? author
          : interpolate("%(author)s · %(name)s", { author, name });
    const mention = this._isMention(message)
      ? gettext("You were mentioned")
      : isReply
        ? gettext("New reply in a thread")
        : "";
    const body = hasText
      ? beginningOf(message.content, BODY_CHARS) || gettext("sent a file")
      : mention;
    // A notification replaces the previous one of its chat or thread.
    const options = {
      body,
      tag: isReply ? `thread ${message.thread}` : `chat ${chat.id}`,
      renotify: true,
      silent: !hasSound,
      icon: pageIcon(),
    };
    try {
      const shown = new Notification(title, options);
      this._last = { messageId: message.id, shown };
      shown.onclick = () => {
        window.focus();
        shown.close();
        dispatchEvent(
          new CustomEvent("open-message", {
            detail: {
              chatId: chat.id,
              messageId: message.id,
              threadId: isReply ? message.thread : "",
            },
          }),
        );
      };
    } catch (error) {
      // Some phones only show notifications from service workers.
      if (!(error instanceof TypeError)) throw error;
    }
  }
}

/** The address of the page's icon; the addresses of static files change with a release. */
function pageIcon() {
  const link = document.querySelector('link[rel="icon"]');
  return link instanceof HTMLLinkElement ? link.href : undefined;
}
