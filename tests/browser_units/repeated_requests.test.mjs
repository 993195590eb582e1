import assert from "node:assert/strict";
import { test } from "node:test";
import { Approvals } from "../../static/uamp/approvals.js";

const CALL = {
  type: "tool.approval_required",
  response_id: "r",
  call_id: "c",
  agent: "helper",
  name: "delete_file",
};

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
