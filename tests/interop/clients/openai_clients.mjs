// OpenAI's JavaScript client and the Vercel AI SDK: answers, streams, thoughts, errors.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";
import OpenAI from "openai";

const [origin, key] = process.argv.slice(2);
const baseURL = `${origin}/v1`;
const messages = [{ role: "user", content: "Hello there" }];
const seen = {};

async function failure(asked) {
  try {
    await asked();
    return [];
  } catch (error) {
    return [error.status ?? error.statusCode, error.param ?? null];
  }
}

const client = new OpenAI({ baseURL, apiKey: key, maxRetries: 0 });
const completions = client.chat.completions;
const whole = await completions.create({ model: "echo", messages });
seen.whole = whole.choices[0].message.content;
seen.stream = "";
for await (const chunk of await completions.create({ model: "echo", messages, stream: true })) {
  seen.stream += chunk.choices[0]?.delta?.content ?? "";
}
seen.unpaid = await failure(() => completions.create({ model: "paid-echo", messages }));
seen.wrong = await failure(() => completions.create({ model: "echo", messages, n: 2 }));

const provider = createOpenAICompatible({ name: "uamp", baseURL, apiKey: key });
const options = { prompt: "Hello there", maxRetries: 0 };
seen.vercel = (await generateText({ model: provider("echo"), ...options })).text;
seen.vercelStream = { text: "", thinks: false, failed: false };
for await (const part of streamText({ model: provider("thinker"), ...options }).fullStream) {
  seen.vercelStream.thinks ||= part.type === "reasoning-delta";
  seen.vercelStream.failed ||= part.type === "error";
  if (part.type === "text-delta") seen.vercelStream.text += part.text;
}
seen.vercelUnpaid = await failure(() => generateText({ model: provider("paid-echo"), ...options }));
console.log(JSON.stringify(seen));
