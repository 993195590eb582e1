/**
 * The parts of the state that the message list renders. Deltas are not among them: the view of an
 * answer renders its own.
 */

/** @typedef {import("../store/open-chat.js").OpenChat} OpenChat */

/** @type {(keyof OpenChat)[]} */
const PARTS = [
  "chatId",
  "loaded",
  "entries",
  "hasOlder",
  "hasNewer",
  "loadingOlder",
  "loadingNewer",
  "arrived",
  "target",
  "editing",
  "unreadAfter",
  "answers",
  "failures",
  "changes",
  "readers",
  "receipts",
  "approvals",
  "payments",
  "turns",
];

/** Create a selector for these parts, which returns the same object until one of them changes. */
export function partsSelector() {
  /** @type {OpenChat|null} */
  let known = null;
  return (/** @type {OpenChat} */ state) => {
    const before = known;
    if (before && PARTS.every((part) => before[part] === state[part])) return before;
    known = state;
    return state;
  };
}
