/**
 * What of the chat the list of messages draws: a delta of an answer is not, its own view draws it.
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

/** Select the parts of the state, as the same object until one of them changes. */
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
