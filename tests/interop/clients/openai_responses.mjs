// OpenAI's JavaScript client on the Responses API: answers, streams, tools, parsing, background,
// errors.
import OpenAI from "openai";

const [origin, key] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${origin}/v1`, apiKey: key, maxRetries: 0 });
const { responses } = client;
const input = "Hello there";
const tools = [
  {
    type: "function",
    name: "search",
    strict: false,
    parameters: { type: "object", properties: {} },
  },
];
const seen = {};

async function failure(asked) {
  try {
    await asked();
    return [];
  } catch (error) {
    return [error.status, error.code ?? null, error.param ?? null];
  }
}

const whole = await responses.create({ model: "echo", input });
seen.whole = whole.output_text;
seen.chained = (
  await responses.create({ model: "echo", input: "Again", previous_response_id: whole.id })
).output_text;
seen.stream = { text: "", thought: "", last: "" };
for await (const event of await responses.create({ model: "thinker", input, stream: true })) {
  if (event.type === "response.output_text.delta") seen.stream.text += event.delta;
  if (event.type === "response.reasoning_summary_text.delta") seen.stream.thought += event.delta;
  seen.stream.last = event.type;
}
const made = await responses.stream({ model: "tool-user", input, tools }).finalResponse();
const [call] = made.output;
const result = { type: "function_call_output", call_id: call.call_id, output: "three cats" };
seen.tool = [
  call.name,
  (
    await responses.create({
      model: "tool-user",
      input: [result],
      tools,
      previous_response_id: made.id,
    })
  ).output_text,
];
const format = {
  type: "json_schema",
  name: "found",
  strict: true,
  schema: { type: "object", properties: { n: { type: "integer" } } },
};
seen.parsed = (
  await responses.parse({ model: "echo", input: '{"n": 3}', text: { format } })
).output_parsed;
const slow = await responses.create({ model: "slow", input, background: true });
seen.background = [slow.status, (await responses.cancel(slow.id)).status];
seen.kept = (await responses.retrieve(slow.id)).status;
seen.items = (await responses.inputItems.list(made.id)).data.map((item) => item.type);
seen.unpaid = (await failure(() => responses.create({ model: "paid-echo", input })))[0];
seen.wrong = await failure(() => responses.create({ model: "echo", input, truncation: "auto" }));
seen.missing = await failure(() => responses.retrieve("resp_0"));
console.log(JSON.stringify(seen));
