/**
 * Prints what the modules of the pages find in exports: it reads a JSON array of exports (NDJSON
 * as `text`, the published `keys`, and the messages that a page shows as `shown`) from standard
 * input.
 */

import { readFileSync } from "node:fs";
import { entryOf } from "../../../static/chat/store/entry.js";
import { ChatCheck } from "../../../static/uamp/logs/chat-check.js";
import { batchesOf } from "../../../static/uamp/logs/lines.js";

async function checked({ text, keys, shown }) {
  const check = new ChatCheck(JSON.parse(text.slice(0, text.indexOf("\n"))).id, {
    of: async (kid) => keys.filter((key) => key.kid === kid),
    ofLogs: async () => keys.filter((key) => key.uamp_owner === "log"),
  });
  for await (const lines of batchesOf(new Blob([text]).stream())) await check.add(lines);
  return check.finish(shown.map((message) => entryOf(message)));
}

const documents = JSON.parse(readFileSync(0, "utf-8"));
const results = [];
for (const document of documents) results.push(await checked(document));
console.log(JSON.stringify(results));
