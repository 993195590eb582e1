/**
 * Items of a list that begin with `[ ]` or `[x]`, as in `chat_app/markdown_rules.py`. Knows no DOM.
 */

const BOX = /^\[([ xX])\](?=[ \t])/;

/** A rule for the tokens of a whole text. @param {import("./types.js").CoreState} state */
function tasks(state) {
  state.tokens.forEach((token, at) => {
    const item = state.tokens[at - 2];
    const text = token.children?.[0];
    if (token.type !== "inline" || item?.type !== "list_item_open" || text?.type !== "text") return;
    const box = BOX.exec(text.content);
    if (!box) return;
    item.attrSet("class", "task");
    const checkbox = new state.Token("task_box", "span", 0);
    checkbox.meta = { isDone: box[1] !== " " };
    text.content = text.content.slice(box[0].length).trimStart();
    token.children?.unshift(checkbox);
  });
}

/** @param {any} parser of markdown-it */
export function addTasks(parser) {
  parser.core.ruler.push("tasks", tasks);
  parser.renderer.rules.task_box = (
    /** @type {import("./types.js").Token[]} */ tokens,
    /** @type {number} */ at,
  ) =>
    tokens[at].meta?.isDone
      ? '<span class="task-box is-done" role="img" aria-label="Done"></span>'
      : '<span class="task-box" role="img" aria-label="Not done"></span>';
}
