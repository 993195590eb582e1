/** The names that a text mentions. */

/** @param {string} text @returns {string[]} in lower case, each once, in their order */
export function mentioned(text) {
  // What is code is not said to anyone.
  const said = text.replace(/```[\s\S]*?(?:```|$)|`[^`\n]*`/g, " ");
  const names = Array.from(said.matchAll(/(?:^|[\s(])@([\w.-]+)/g), ([, name]) => name.toLowerCase().replace(/[.-]+$/, ""));
  return [...new Set(names.filter(Boolean))];
}

/**
 * The names that a text mentions and no member has; a name that is still being written is not among them.
 * @param {string} text
 * @param {{name: string}[]} members
 */
export function unknownMentions(text, members) {
  const known = new Set(members.map(({ name }) => name.toLowerCase()));
  const finished = text.replace(/(^|[\s(])@[\w.-]*$/, "$1");
  return mentioned(finished).filter((name) => !known.has(name) && !["all", "everyone", "here"].includes(name));
}
