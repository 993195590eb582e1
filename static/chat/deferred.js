/**
 * Loads modules that are not needed to show a chat at first. The log loads beside the composer;
 * `later.js` loads once the chat is shown, or with the first event or key meant for it.
 */

import { ApiError } from "./api.js";
import { gettext } from "./words.js";

/** Events handled only by parts in `later.js`. */
const EVENTS = [
  "add-members",
  "ask-to-call",
  "chat-menu",
  "chat-settings",
  "delete-message",
  "message-menu",
  "new-chat",
  "open-member",
  "open-profile",
  "open-search",
  "open-settings",
  "open-threads",
  "pick-emoji",
  "react",
  "set-payer",
  "share-chat",
  "show-frames",
  "show-revisions",
  "show-shortcuts",
  "verify-chat",
  "view-media",
];

/** @type {Promise<boolean>|null} */
let loading = null;
let isHere = false;

/**
 * Load the list of messages; rejects with an ApiError without a connection.
 * @returns {Promise<unknown>}
 */
export function loadLog() {
  const log = import("./log/message-list.js").catch((error) => {
    throw isUnreachable(error) ? new ApiError(0) : error;
  });
  // It is awaited later, and a failure must not count as unhandled until then.
  log.catch(() => {});
  return log;
}

/**
 * Load the other parts once; without a connection the next call tries again.
 * @returns {Promise<boolean>} whether they are here
 */
export function loadLater() {
  loading ||= import("./later.js").then(
    () => (isHere = true),
    (error) => {
      if (!isUnreachable(error)) throw error;
      loading = null;
      return false;
    },
  );
  return loading;
}

/** Replay for `later.js` the events and keys that precede it. */
export function forwardToLater() {
  for (const type of EVENTS)
    addEventListener(type, (event) =>
      repeat(
        event,
        () =>
          new CustomEvent(type, {
            bubbles: true,
            detail: /** @type {CustomEvent} */ (event).detail,
          }),
      ),
    );
  addEventListener("keydown", (event) => {
    if (isHere || !isForLater(event)) return;
    // The browser has its own meaning for most of them.
    if (event.ctrlKey || event.metaKey) event.preventDefault();
    repeat(event, () => new KeyboardEvent("keydown", event));
  });
}

/** @param {Event} event @param {() => Event} copy */
async function repeat({ target }, copy) {
  if (isHere) return;
  if (await loadLater()) target?.dispatchEvent(copy());
  else
    document.querySelector("chat-view")?.dispatchEvent(
      new CustomEvent("say", {
        detail: gettext("You're offline. Try again when you're back online."),
      }),
    );
}

/**
 * Whether a key opens the palette, the search, the threads or the list of shortcuts.
 * @param {KeyboardEvent} event
 */
function isForLater({ key, ctrlKey, metaKey, shiftKey, altKey, isComposing }) {
  if (altKey || isComposing) return false;
  if (!ctrlKey && !metaKey) return key === "?";
  return (shiftKey ? ["f", "l"] : ["k"]).includes(key.toLowerCase());
}

/**
 * Whether a module could not be fetched; each browser words this error differently.
 * @param {unknown} error
 */
const isUnreachable = (error) => error instanceof TypeError && /module/.test(error.message);
