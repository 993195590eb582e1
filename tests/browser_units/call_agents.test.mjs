import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentHost } from "../../static/chat/calls/agents/agent-host.js";
import { AgentTurns } from "../../static/chat/calls/agents/agent-turns.js";
import { changesOf, namesBeside, streamsForAgents } from "../../static/chat/calls/agents/mixing.js";
import {
  RATE,
  fromBase64,
  loudness,
  resampled,
  toBase64,
} from "../../static/chat/calls/agents/samples.js";
import {
  FRAME_MS,
  Frames,
  SpeechDetector,
  THRESHOLDS,
} from "../../static/chat/calls/agents/speech-detector.js";

const LENGTH = (RATE * FRAME_MS) / 1000;
const frame = (level) => new Float32Array(LENGTH).fill(level);
/** Push so many frames of a loudness; return what they led to. */
const push = (detector, level, count, speakers = []) =>
  Array.from({ length: count }, () => detector.push(frame(level), speakers)).filter(Boolean);
const seconds = ({ samples }) => samples.length / RATE;

test("samples keep their sound at another rate, and their values as 16 bits", () => {
  const tone = Float32Array.from(
    { length: 48_000 },
    (_, n) => 0.5 * Math.sin((2 * Math.PI * 440 * n) / 48_000),
  );
  for (const rate of [48_000, 44_100, 16_000]) {
    const part = tone.slice(0, rate);
    const found = resampled(part, rate);
    assert.equal(found.length, RATE);
    assert.ok(Math.abs(loudness(found) - loudness(part)) < 0.01, `${rate}`);
  }
  assert.equal(resampled(tone, RATE), tone);
  const sent = toBase64(Float32Array.from([0, 0.5, -0.5, 2, -2]));
  assert.deepEqual(
    [...fromBase64(sent)].map((value) => Math.round(value * 100) / 100),
    [0, 0.5, -0.5, 1, -1],
  );
});

test("frames have their length, whatever the pieces are", () => {
  const frames = new Frames();
  const lengths = [100, LENGTH * 2, 7].flatMap((length) =>
    frames.add(new Float32Array(length)).map((one) => one.length),
  );
  assert.deepEqual(lengths, [LENGTH, LENGTH]);
});

test("speech begins with loud frames and ends after silence, with what came before it", () => {
  const detector = new SpeechDetector({ mostSeconds: 30 });
  assert.deepEqual(push(detector, 0.001, 100), []);
  assert.deepEqual(push(detector, 0.1, THRESHOLDS.beginFrames - 1), []);
  assert.deepEqual(push(detector, 0.1, 20, ["1", "2"]), [{ type: "began" }]);
  // A pause in a sentence is not the end of it.
  assert.deepEqual(push(detector, 0, THRESHOLDS.silenceFrames - 1), []);
  assert.deepEqual(push(detector, 0.1, 10, ["1"]), []);
  const [{ type, utterance }] = push(detector, 0, THRESHOLDS.silenceFrames);
  assert.equal(type, "ended");
  assert.deepEqual(utterance.speakers, ["1", "2"]);
  const said = THRESHOLDS.beginFrames - 1 + 20 + 10 + 2 * THRESHOLDS.silenceFrames - 1;
  assert.equal(seconds(utterance), ((said + THRESHOLDS.prefixFrames + 1) * FRAME_MS) / 1000);
  assert.equal(detector.isSpeech, false);
});

test("noise is no speech, a click is dropped, and what is long ends by itself", () => {
  const detector = new SpeechDetector({ mostSeconds: 2 });
  assert.deepEqual(push(detector, THRESHOLDS.begin - 0.001, 200), []);
  push(detector, 0.1, THRESHOLDS.beginFrames);
  assert.deepEqual(push(detector, 0, THRESHOLDS.silenceFrames), [{ type: "dropped" }]);
  const found = push(detector, 0.1, 150).filter(({ type }) => type === "ended");
  assert.equal(found.length, 1);
  assert.ok(seconds(found[0].utterance) <= 2);
});

test("while an agent speaks only loud speech interrupts it", () => {
  const detector = new SpeechDetector({ mostSeconds: 30 });
  detector.interrupts = true;
  assert.deepEqual(push(detector, THRESHOLDS.interrupt - 0.01, 100), []);
  assert.deepEqual(push(detector, 0.1, THRESHOLDS.interruptFrames - 1), []);
  assert.deepEqual(push(detector, 0.1, 1), [{ type: "began" }]);
});

test("a held button takes all, also what is quiet", () => {
  const detector = new SpeechDetector({ mostSeconds: 2 });
  push(detector, 0.001, 40);
  detector.hold();
  assert.deepEqual(push(detector, 0.001, 50, ["2"]), []);
  const { type, utterance } = detector.release();
  assert.deepEqual([type, seconds(utterance), utterance.speakers], ["ended", 1, ["2"]]);
  detector.hold();
  push(detector, 0.1, 5);
  assert.equal(detector.release().type, "dropped");
  detector.hold();
  assert.deepEqual(
    push(detector, 0.1, 100).map((one) => one.type),
    ["ended"],
  );
  assert.equal(detector.isHeld, false);
});

test("agents are sent people, and no agent; names stand beside the speech of others", () => {
  const peers = [
    { userId: "2", state: "connected", stream: "b", agents: "x" },
    { userId: "3", state: "failed", stream: "c" },
  ];
  const wanted = streamsForAgents({ id: "1", stream: "a" }, peers);
  assert.deepEqual(
    [...wanted],
    [
      ["1", "a"],
      ["2", "b"],
    ],
  );
  assert.deepEqual(
    changesOf(
      new Map([
        ["1", "old"],
        ["3", "c"],
      ]),
      wanted,
    ),
    { gone: ["1", "3"], come: ["1", "2"] },
  );
  assert.deepEqual(changesOf(wanted, wanted), { gone: [], come: [] });
  const members = [
    { user_id: "1", username: "alice" },
    { user_id: "2", username: "bob" },
  ];
  assert.deepEqual(namesBeside(["1"], members, "1"), []);
  assert.deepEqual(namesBeside([], members, "1"), []);
  assert.deepEqual(namesBeside(["2"], members, "1"), ["bob"]);
  assert.deepEqual(namesBeside(["2", "1", "9"], members, "1"), ["alice", "bob"]);
});

/** An agent's turns, and all that they did, in order. */
function turns() {
  const did = [];
  let eventId = 0;
  const note =
    (what) =>
    (...values) =>
      void did.push([what, ...values].join(" "));
  const agent = new AgentTurns({
    speak: (utterance) => {
      did.push(`speak ${utterance}`);
      return utterance === "offline" ? "" : `e${++eventId}`;
    },
    cancel: note("cancel"),
    play: note("play"),
    hush: note("hush"),
    changed: note("state"),
    said: note("said"),
  });
  return { agent, did: () => did.splice(0) };
}

const message = (number) => ({ id: `m${number}`, client_event_id: `e${number}` });
const response = (number) => ({ id: `r${number}`, messageId: `m${number}` });

test("an utterance is answered aloud, and the agent listens when all was played", () => {
  const { agent, did } = turns();
  agent.said("one");
  agent.message({ id: "m9", client_event_id: "e9" });
  agent.message(message(1));
  agent.response({ id: "r9", messageId: "m9" });
  agent.response(response(1));
  agent.sound("r9", "foreign");
  agent.sound("r1", "a");
  agent.sound("r1", "b");
  agent.ended("r1");
  assert.equal(agent.state, "speaks");
  agent.played();
  assert.deepEqual(did(), [
    "speak one",
    "state thinks",
    "play a",
    "state speaks",
    "play b",
    "state listens",
  ]);
});

test("speech interrupts an answer, and one answer is asked for at a time", () => {
  const { agent, did } = turns();
  agent.said("one");
  agent.message(message(1));
  agent.response(response(1));
  agent.sound("r1", "a");
  did();
  agent.began();
  agent.sound("r1", "late");
  assert.deepEqual(did(), ["hush", "cancel r1", "state thinks"]);
  agent.said("two");
  agent.said("three");
  assert.ok(!did().includes("speak three"));
  agent.ended("r1");
  assert.deepEqual(did(), ["speak three"]);
  // Said before the answer to the former is known: that one is stopped when it begins.
  agent.said("four");
  agent.message(message(2));
  agent.response(response(2));
  assert.deepEqual(did(), ["hush", "cancel r2"]);
  agent.ended("r2");
  assert.deepEqual(did(), ["speak four"]);
});

test("an agent that a budget keeps from answering listens again", () => {
  const { agent, did } = turns();
  agent.said("one");
  agent.message(message(1));
  agent.stopped("m9");
  assert.equal(agent.state, "thinks");
  agent.stopped("m1");
  agent.said("two");
  assert.deepEqual(did(), [
    "speak one",
    "state thinks",
    "state listens",
    "speak two",
    "state thinks",
  ]);
});

test("an answer that needs a payment is not interrupted, and one that is refused or lost is over", () => {
  const { agent, did } = turns();
  agent.said("one");
  agent.message(message(1));
  agent.response(response(1));
  agent.waiting(["r1"]);
  agent.said("two");
  agent.waiting([]);
  assert.deepEqual(did(), [
    "speak one",
    "state thinks",
    "state waits",
    "said waits",
    "state thinks",
  ]);
  agent.ended("r1");
  agent.said("two");
  assert.equal(agent.refused("e1"), false);
  assert.equal(agent.refused("e2"), true);
  assert.equal(agent.state, "listens");
  agent.said("three");
  did();
  agent.reconnected();
  assert.deepEqual(did(), ["said lost", "state listens"]);
  agent.said("offline");
  assert.deepEqual(did(), ["speak offline", "said offline"]);
  agent.said("four");
  agent.message(message(4));
  agent.response(response(4));
  did();
  agent.close();
  assert.deepEqual(did(), ["hush", "cancel r4"]);
});

test("an agent whose answer is gone with the log of the chat listens again", () => {
  const node = () => ({ connect() {}, disconnect() {} });
  globalThis.AudioContext = class {
    createMediaStreamDestination = () => ({ stream: null });
    createGain = node;
    close() {}
  };
  const session = Object.assign(new EventTarget(), {
    ready: true,
    payments: { list: [] },
    approvals: { list: [] },
    call: (type) => `event of ${type}`,
    cancel() {},
  });
  const emit = (type, detail) => session.dispatchEvent(new CustomEvent(type, { detail }));
  const notes = [];
  const host = new AgentHost({
    session,
    callId: "c",
    mostSeconds: 30,
    speakers: () => [],
    beside: () => "",
    changed() {},
    said: (agent, note) => notes.push([agent, note]),
  });
  host.update(["a", "idle"]);
  const { turns } = host.agents.get("a");
  turns.said({ samples: new Float32Array(1), speakers: [] });
  emit("message", { message: { id: "m", client_event_id: "event of response.create" } });
  emit("response", { id: "r", messageId: "m" });
  assert.deepEqual([turns.state, turns.responseId], ["thinks", "r"]);

  emit("reset", {});
  assert.deepEqual([turns.state, turns.responseId, notes], ["listens", "", [["a", "lost"]]]);
  host.close();
});
