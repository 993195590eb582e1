/**
 * Stores the list of chats and the visible part of the open one on the device, a little after each
 * change.
 */

/** @typedef {import("../store/open-chat.js").OpenChat} OpenChat */

const LATER_MS = 1000;

/**
 * @param {import("./offline-chats.js").OfflineChats} kept
 * @param {import("../chat-store.js").ChatStore} store
 * @param {import("../store/store.js").Store<OpenChat>} page
 */
export function keepWhatIsRead(kept, store, page) {
  let timer = 0;
  /** The last stored entries. @type {import("../store/entry.js").Entry[]|null} */
  let entries = null;
  let isListNew = false;
  /** @type {OpenChat|null} the chat with unsaved changes */
  let open = null;

  const write = () => {
    clearTimeout(timer);
    timer = 0;
    if (isListNew) kept.keepList(store.list);
    isListNew = false;
    const chat = open && store.get(open.chatId);
    // The list may arrive after the messages; the next change then saves them.
    if (!open || !chat) return;
    kept.keepChat({ chat, entries: open.entries, hasOlder: open.hasOlder });
    open = null;
  };
  const later = () => {
    timer ||= window.setTimeout(write, LATER_MS);
  };

  page.subscribe(() => {
    const { state } = page;
    // Save pending changes before another chat replaces them.
    if (open && open.chatId !== state.chatId) write();
    // Most changes come from running answers. Live messages are complete only once their page is
    // loaded.
    if (state.entries === entries || !state.loaded || state.hasNewer) return;
    entries = state.entries;
    open = state;
    later();
  });
  store.addEventListener("change", () => {
    if (!store.loaded) return;
    isListNew = true;
    later();
  });
  store.addEventListener("removed", (event) => {
    const id = /** @type {CustomEvent<string>} */ (event).detail;
    if (open?.chatId === id) open = null;
    kept.drop(id);
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && timer) write();
  });
}
