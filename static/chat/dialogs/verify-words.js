/** What the check of a chat says, for people. */

import { formatExact } from "../money/amounts.js";
import { fullTime } from "../text/time.js";
import { unsupportedIn } from "../../uamp/logs/chat-check.js";
import { gettext, interpolate, ngettext } from "../words.js";

/**
 * @typedef {import("../../uamp/logs/chat-check.js").ChatResult} ChatResult
 * @typedef {import("../../uamp/logs/chat-check.js").Problem} Problem
 */

/** @type {Record<import("../../uamp/logs/chat-check.js").ProblemKind, string>} */
const PROBLEMS = {
  message_changed: gettext("This message differs from the one in the log."),
  message_missing: gettext("The log has a message here that is missing from the chat."),
  entry_changed: gettext("This log entry was changed or inserted later."),
  entry_missing: gettext("A log entry is missing here."),
  checkpoint_changed: gettext("This entry differs from the one that the server signed."),
  head_changed: gettext("The signature on the end of the log doesn't match."),
  head_key_unknown: gettext(
    "The end of the log was signed with a key that this server doesn't publish.",
  ),
  not_signed: gettext(
    "The server doesn't sign the end of this log. It may have been changed after it was signed.",
  ),
  answer_changed: gettext("This answer isn't what the agent signed: it was changed afterwards."),
  response_changed: gettext(
    "The message is exactly what the agent signed, but the stored answer that other programs read was changed.",
  ),
  usage_changed: gettext(
    "The message is exactly what the agent signed, but the stored usage or cost of the answer was changed.",
  ),
  question_changed: gettext("The question isn't the one that was answered."),
  key_unknown: gettext(
    "This answer or its receipt was signed with a key that this server doesn't publish.",
  ),
  receipt_changed: gettext("This receipt isn't what the server signed."),
  price_changed: gettext("The agent signed a different price: %(price)s."),
  history_rewritten: gettext("This entry differs from the one that was here on %(time)s."),
  history_cut: gettext("The log had this entry on %(time)s, and now ends before it."),
  tree_changed: gettext("The signature on the server's checkpoint doesn't match."),
  tree_key_unknown: gettext(
    "The server's checkpoint was signed with a key that this server does not publish.",
  ),
  tree_rewritten: gettext(
    "The server's checkpoint doesn't continue the one that this browser saw on %(time)s: its tree of signed logs was rewritten.",
  ),
  tree_proof_changed: gettext(
    "The server's proof that the end of the log is in its checkpoint is wrong.",
  ),
};

/** @param {Problem} problem */
export const sentenceOf = ({ kind, price, since }) =>
  interpolate(PROBLEMS[kind], {
    ...(price ? { price: formatExact(price.amount, price.currency) } : {}),
    ...(since ? { time: fullTime(since) } : {}),
  });

/** How many answers were compared with their signatures. @param {ChatResult} result */
function signedText({ answers }) {
  const signed = (answers.valid ?? 0) + (answers.rotated ?? 0);
  return interpolate(
    ngettext(
      "%(n)s answer is as its agent signed it.",
      "%(n)s answers are as their agents signed them.",
      signed,
    ),
    { n: signed },
  );
}

/** @param {ChatResult} result */
export function verdictText({ verdict, problemCount, known }) {
  if (verdict === "rewritten")
    return interpolate(
      gettext("This chat's history was rewritten since you checked it on %(time)s."),
      { time: fullTime(known.end?.at ?? 0) },
    );
  if (verdict === "unchanged") return gettext("Nothing was changed.");
  if (verdict === "incomplete")
    return gettext("No change was found, but not everything could be verified.");
  return interpolate(
    ngettext("%(n)s problem was found.", "%(n)s problems were found.", problemCount),
    { n: problemCount },
  );
}

/** Why the signed head proves nothing, unless that is a problem. @param {ChatResult} result */
function headGap({ headState, problems }) {
  if (headState === "unsupported")
    return gettext("This browser can't verify the signature on the end of the log.");
  if (headState || problems.some(({ kind }) => kind === "not_signed")) return "";
  return gettext("The server hasn't signed the end of the log.");
}

/** @param {ChatResult} result */
function headText({ head, headState }) {
  if (!head || headState !== "signed") return "";
  return interpolate(gettext("%(server)s signed the end of the log on %(time)s."), {
    server: head.server,
    time: fullTime(head.at * 1000),
  });
}

/** That the log continues the one of an earlier check. @param {ChatResult} result */
function continuesText({ end, known }) {
  if (!known.end || !end) return "";
  return interpolate(gettext("The log continues the one that you checked on %(time)s."), {
    time: fullTime(known.end.at),
  });
}

/**
 * What the server's checkpoint proves.
 * @param {ChatResult} result
 * @returns {string[]}
 */
function treeTexts({ head, tree, known }) {
  if (!tree || tree.problem) return [];
  if (tree.state === "absent") return [gettext("The server has no checkpoint yet.")];
  const place =
    tree.state === "included"
      ? gettext("The end of the log is in the server's checkpoint.")
      : gettext("The end of the log isn't in a checkpoint of the server yet.");
  const continues = interpolate(
    gettext("The server's checkpoint continues the one that this browser saw on %(time)s."),
    { time: fullTime(known.tree?.at ?? 0) },
  );
  return [head ? place : "", known.tree ? continues : ""];
}

/** @param {number} n @param {string} text */
const withCount = (n, text) => (n ? interpolate(text, { n }) : "");

/**
 * What could not be verified.
 * @param {ChatResult} result
 * @returns {string[]}
 */
export function gapsOf(result) {
  const { absent, unverified, unsigned, unchained } = result;
  return [
    headGap(result),
    withCount(
      absent,
      gettext(
        "Messages that the log has and the chat doesn't: %(n)s. They were removed, or written during this check: verify again.",
      ),
    ),
    withCount(unverified, gettext("Messages that the log can't confirm: %(n)s.")),
    withCount(
      unchained,
      gettext("Entries older than the hash chain, which can't be verified: %(n)s."),
    ),
    withCount(unsigned, gettext("Entries written since the end of the log was signed: %(n)s.")),
    withCount(unsupportedIn(result), gettext("Signatures that this browser can't verify: %(n)s.")),
  ].filter(Boolean);
}

/**
 * What was checked.
 * @param {ChatResult} result
 * @returns {string[]}
 */
export function factsOf(result) {
  const { messages, entries, answers, erased } = result;
  return [
    interpolate(ngettext("%(n)s message was checked.", "%(n)s messages were checked.", messages), {
      n: messages,
    }),
    interpolate(
      ngettext("%(n)s log entry was checked.", "%(n)s log entries were checked.", entries),
      { n: entries },
    ),
    answers.valid || answers.rotated ? signedText(result) : "",
    headText(result),
    continuesText(result),
    ...treeTexts(result),
    withCount(
      answers.unsigned ?? 0,
      ngettext("%(n)s answer is unsigned.", "%(n)s answers are unsigned.", answers.unsigned ?? 0),
    ),
    withCount(erased, gettext("Entries whose content was deleted, so only a hash is left: %(n)s.")),
  ].filter(Boolean);
}
