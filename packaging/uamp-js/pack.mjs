/** Before `npm pack`: the modules of static/uamp as they are, and the types of their JSDoc. */

import { spawnSync } from "node:child_process";
import { cpSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const from = join(root, "static", "uamp");
const lib = join(here, "lib");

rmSync(lib, { recursive: true, force: true });
const modules = readdirSync(from).filter((name) => name.endsWith(".js"));
for (const name of modules) cpSync(join(from, name), join(lib, name));
const tsc = join(root, ".venv", "browser", "node_modules", ".bin", "tsc");
const options = [
  "--declaration",
  "--emitDeclarationOnly",
  "--allowJs",
  "--strict",
  "--target",
  "es2023",
  "--module",
  "nodenext",
  "--moduleResolution",
  "nodenext",
  "--lib",
  "es2023,dom,dom.iterable",
  "--types",
  "",
  "--rootDir",
  from,
  "--outDir",
  lib,
  "--ignoreConfig",
];
const made = spawnSync(tsc, [...options, ...modules.map((name) => join(from, name))], {
  stdio: "inherit",
});
process.exit(made.status ?? 1);
