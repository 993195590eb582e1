import assert from "node:assert/strict";
import { mock, test } from "node:test";

/** A worker that is loaded, and answers, when the test says so. */
class SlowWorker {
  static all = [];
  asked = [];
  isEnded = false;
  constructor() {
    SlowWorker.all.push(this);
  }
  postMessage(job) {
    this.asked.push(job.code);
  }
  terminate() {
    this.isEnded = true;
  }
  say(data) {
    this.onmessage({ data });
  }
}
globalThis.window = globalThis;
globalThis.Worker = SlowWorker;
mock.timers.enable({ apis: ["setTimeout"] });
const { colour } = await import("../../static/chat/markdown/colours.js");

/** A place on the page, with the pieces that were painted there. */
function placeOf(code) {
  return {
    textContent: code,
    painted: null,
    replaceChildren(...pieces) {
      this.painted = pieces;
    },
  };
}

test("a worker that loads slowly colours the code all the same; one that takes long for a code is ended", () => {
  const [first, second, third] = ["x = 1", "y = 2", "z = 3"].map(placeOf);
  for (const place of [first, second, third]) colour(place, "python");
  const [slow] = SlowWorker.all;
  mock.timers.tick(10_000);
  assert.deepEqual([slow.asked, slow.isEnded], [[], false]);
  slow.say("ready");
  slow.say([["x = 1", ""]]);
  assert.deepEqual(first.painted, ["x = 1"]);
  assert.deepEqual(slow.asked, ["x = 1", "y = 2"]);
  mock.timers.tick(2_000);
  assert.equal(slow.isEnded, true);
  const next = SlowWorker.all[1];
  assert.deepEqual(next.asked, []);
  next.say("ready");
  next.say([["z = 3", ""]]);
  assert.deepEqual([second.painted, third.painted], [null, ["z = 3"]]);
});
