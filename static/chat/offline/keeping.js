/**
 * Has the device keep the list of chats and what is shown of the open one, a little after each
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
  /** Those that were taken last. @type {import("../store/entry.js").Entry[]|null} */
  let entries = null;
  let isListNew = false;
  /** @type {OpenChat|null} the chat that has something new to keep */
  let open = null;

  const write = () => {
    clearTimeout(timer);
    timer = 0;
    if (isListNew) kept.keepList(store.list);
    isListNew = false;
    const chat = open && store.get(open.chatId);
    // The list may come after the messages; it is kept with the next change then.
    if (!open || !chat) return;
    kept.keepChat({ chat, entries: open.entries, hasOlder: open.hasOlder });
    open = null;
  };
  const later = () => {
    timer ||= window.setTimeout(write, LATER_MS);
  };

  page.subscribe(() => {
    const { state } = page;
    // What is open next must not take the place of what was not written yet.
    if (open && open.chatId !== state.chatId) write();
    // Most changes are those of growing answers. Messages that came live are complete only once
    // their page is loaded.
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
