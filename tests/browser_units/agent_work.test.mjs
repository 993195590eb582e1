import assert from "node:assert/strict";
import { test } from "node:test";
import { LiveResponse } from "../../static/uamp/live-response.js";
import { workText, worksOf } from "../../static/chat/store/agent-work.js";
import { offlineMentions } from "../../static/chat/store/mentions.js";

const nameOf = (userId) => ({ 1: "alice" })[userId] ?? "";

/** A session with one answer of `writer`, and how its work reads. */
function session() {
  const response = new LiveResponse("r1", { agent: "writer" });
  const chat = {
    responses: new Map([["r1", response]]),
    approvals: { list: [] },
    payments: { list: [] },
  };
  return {
    chat,
    response,
    text: () =>
      worksOf(chat)
        .map((work) => `${work.agent}: ${workText(work, nameOf)}`)
        .join("; "),
  };
}

test("an answer thinks, runs a tool as far as it is, and writes", () => {
  const { chat, response, text } = session();
  assert.equal(text(), "writer: Thinking…");
  response.applyThinking({ content: "hm" });
  assert.equal(text(), "writer: Thinking…");
  response.applyDelta({
    delta: { type: "tool_call", tool_call: { id: "c1", name: "report", arguments: "{}" } },
  });
  assert.equal(text(), "writer: Running report");
  response.applyProgress({ target_id: "c1", percent: 40.4 });
  assert.equal(text(), "writer: Running report (40%)");
  response.applyProgress({ target_id: "c1", step: 2, total_steps: 5 });
  assert.equal(text(), "writer: Running report, step 2/5 (40%)");
  response.applyDelta({
    delta: { type: "tool_result", tool_result: { call_id: "c1", result: "1" } },
  });
  assert.equal(text(), "writer: Thinking…");
  response.applyDelta({ delta: { type: "text", text: "So" } });
  assert.equal(text(), "writer: Writing…");
  response.finish({ type: "response.done", response: { status: "completed" } });
  assert.deepEqual(worksOf(chat), []);
});

test("whose permission or payment is missing is named, before all else", () => {
  const { chat, response, text } = session();
  response.applyDelta({
    delta: { type: "tool_call", tool_call: { id: "c1", name: "edit", arguments: "{}" } },
  });
  chat.approvals.list = [{ responseId: "r1", name: "edit", userId: "1", state: "asking" }];
  assert.equal(text(), "writer: Waiting for alice to approve edit");
  chat.approvals.list[0].userId = "7";
  assert.equal(text(), "writer: Waiting for approval of edit");
  chat.approvals.list[0].state = "closed";
  const paying = { stage: "waiting_for_payment", message: "Waiting for bob's payment" };
  response.applyStage(paying);
  assert.equal(text(), "writer: Waiting for bob's payment");
  response.applyStage({ ...paying, user_id: "1" });
  assert.equal(text(), "writer: Waiting for alice's payment");
  response.applyStage({ ...paying, user_id: "7" });
  assert.equal(text(), "writer: Waiting for bob's payment");
  response.applyStage({ stage: "in_progress" });
  chat.payments.list = [{ responseId: "r1" }];
  assert.equal(text(), "writer: Waiting for your payment");
  const other = new LiveResponse("r2", { agent: "writer" });
  other.applyDelta({ delta: { type: "text", text: "So" } });
  chat.responses.set("r2", other);
  assert.equal(text(), "writer: Waiting for your payment");
});

test("a mention of an agent that is switched off is found", () => {
  const members = [
    { kind: "agent", name: "Writer", online: false },
    { kind: "agent", name: "critic", online: true },
    { kind: "user", name: "bob", online: false },
  ];
  assert.deepEqual(offlineMentions("@writer and @critic and @bob", members), ["Writer"]);
});
