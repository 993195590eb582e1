/** The page on one's money: what is there, what was spent, and what may be spent. */

import "./balance.js";
import "./limits.js";
import "./spend.js";
import "./statement.js";
import "./tokens.js";
import "./topup.js";

// Back to where one came from: the chat that asked for money.
const from = document.referrer && new URL(document.referrer);
if (from && from.origin === location.origin && from.pathname.startsWith("/chats/")) {
  const back = /** @type {HTMLAnchorElement|null} */ (document.getElementById("back"));
  if (back) back.href = from.pathname;
}

// The parts fill themselves: a place in the page that the address names moves until they have.
const wanted = location.hash && document.getElementById(location.hash.slice(1));
if (wanted) setTimeout(() => wanted.scrollIntoView({ block: "start" }), 400);
