/** The page about the user's money: the balance, spending, and limits. */

import "./balance.js";
import "./limits.js";
import "./spend.js";
import "./statement.js";
import "./tokens.js";
import "./topup.js";

// Link back to the referring page: the chat that asked for money.
const from = document.referrer && new URL(document.referrer);
if (from && from.origin === location.origin && from.pathname.startsWith("/chats/")) {
  const back = /** @type {HTMLAnchorElement|null} */ (document.getElementById("back"));
  if (back) back.href = from.pathname;
}

// The parts load themselves: an anchor moves until they have.
const wanted = location.hash && document.getElementById(location.hash.slice(1));
if (wanted) setTimeout(() => wanted.scrollIntoView({ block: "start" }), 400);
