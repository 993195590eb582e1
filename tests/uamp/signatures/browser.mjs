/**
 * Prints what the module of the pages says of messages: it reads a JSON array of them with their
 * keys from standard input.
 */

import { readFileSync } from "node:fs";
import { checkAnswer } from "../../../static/uamp/signatures.js";

const documents = JSON.parse(readFileSync(0, "utf-8"));
const states = documents.map(
  async ({ message, keys, chat_id: chatId }) =>
    (await checkAnswer(message, keys, { chatId })).state,
);
console.log(JSON.stringify(await Promise.all(states)));
