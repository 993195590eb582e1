/** The summary of a search that screen readers announce when it ends. */

import { gettext, interpolate, ngettext } from "../words.js";

/** @param {{phase: string, found?: {data: unknown[], has_more: boolean}, error?: string}} state */
export function summary({ phase, found, error }) {
  if (phase === "failed") return error;
  if (phase !== "found" || !found) return "";
  return found.has_more
    ? interpolate(gettext("%(n)s or more messages found."), { n: found.data.length })
    : interpolate(ngettext("%(n)s message found.", "%(n)s messages found.", found.data.length), {
        n: found.data.length,
      });
}
