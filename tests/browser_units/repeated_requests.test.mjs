import assert from "node:assert/strict";
import { test } from "node:test";
import { Approvals } from "../../static/uamp/approvals.js";
import { Payments } from "../../static/uamp/payments.js";

const CALL = {
  type: "tool.approval_required",
  response_id: "r",
  call_id: "c",
  agent: "helper",
  name: "delete_file",
};
const BILL = {
  type: "payment.required",
  response_id: "r",
  requirements: { amount: "1", currency: "USD" },
};
const REPEATS_MS = 3_000;

/** The approvals of a session, and their states after each change. */
function openApprovals() {
  const shown = [];
  const approvals = new Approvals(() => shown.push(approvals.list.map(({ state }) => state)));
  return { approvals, shown };
}

test("a decision that may be lost with its connection can be made again at once", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { approvals, shown } = openApprovals();
  const approval = approvals.asked(CALL);
  approvals.sent(approval, "e1");
  approvals.reconnected();
  assert.equal(approvals.asked(CALL), null);
  assert.deepEqual(shown, [["asking"], ["sent"], ["asking"]]);
});

for (const { kind, create, request, open } of [
  {
    kind: "approval",
    create: () => new Approvals(() => {}),
    request: CALL,
    open: ({ list }) => list.filter(({ state }) => state !== "closed").length,
  },
  {
    kind: "payment",
    create: () => new Payments(() => {}),
    request: BILL,
    open: ({ list }) => list.length,
  },
]) {
  test(`the server has the full time to repeat a request after each reconnect: ${kind}`, (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const requests = create();
    requests.asked(request);
    requests.reconnected();
    t.mock.timers.tick(REPEATS_MS - 1);
    requests.reconnected();
    t.mock.timers.tick(REPEATS_MS - 1);
    assert.equal(open(requests), 1);
    t.mock.timers.tick(1);
    assert.equal(open(requests), 0);
  });

  test(`a request that is repeated stays open: ${kind}`, (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const requests = create();
    requests.asked(request);
    requests.reconnected();
    assert.equal(requests.asked(request), null);
    t.mock.timers.tick(REPEATS_MS);
    assert.equal(open(requests), 1);
  });

  test(`a request that is repeated late opens again: ${kind}`, (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const requests = create();
    requests.asked(request);
    requests.reconnected();
    t.mock.timers.tick(REPEATS_MS);
    assert.ok(requests.asked(request));
    assert.equal(open(requests), 1);
  });
}

test("a decided approval does not open again when its request arrives late", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { approvals, shown } = openApprovals();
  approvals.asked(CALL);
  approvals.reconnected();
  approvals.done({ ...CALL, approved: true, user_id: "2" });
  t.mock.timers.tick(REPEATS_MS);
  assert.equal(approvals.asked(CALL), null);
  assert.deepEqual(shown, [["asking"], ["closed"]]);
});

test("an approval of an answer that has ended does not open again", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { approvals, shown } = openApprovals();
  approvals.asked(CALL);
  approvals.reconnected();
  t.mock.timers.tick(REPEATS_MS);
  approvals.responseEnded("r");
  assert.equal(approvals.asked(CALL), null);
  assert.deepEqual(shown, [["asking"], ["closed"]]);
});
