/**
 * node requirements/browser/pages.mjs [--check]: bundle the chat page from the sources in static/
 * into static/dist, with the esbuild of .venv/browser. With --check, compare a new bundle with the
 * one that is there.
 */

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";

const SCRIPTS = ["chat/app.js"];
const SHEETS = ["chat/styles/chat.css"];
const WORKER = "chat/markdown/colour-worker.js";
/** A file of less fits into the packet of its headers. */
const SMALL_BYTES = 1000;
const root = path.resolve(import.meta.dirname, "../..");
const sources = path.join(root, "static");
const target = path.join(sources, "dist");
const tools = path.resolve(process.env.BROWSER_TOOLS ?? path.join(root, ".venv/browser"));
const { build } = createRequire(path.join(tools, "package.json"))("esbuild");

const OPTIONS = {
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "eof",
  logLevel: "warning",
  tsconfigRaw: "{}",
  absWorkingDir: sources,
  outdir: target,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
};
/** An address that a module makes from its own place. */
const OWN_ADDRESS = /new URL\((["`])(\.[^"`]*)\1, import\.meta\.url\)/g;

/** @param {string|Uint8Array} data */
const digest = (data) => createHash("sha256").update(data).digest("hex");
/** @param {string} name */
const isCompressed = (name) => /\.(br|gz)$/.test(name);

/**
 * Let addresses in the modules hold from static/dist, and leave the reader of PDF files where it
 * is: few visits need it.
 * @param {string} worker name of the bundled worker
 */
const addresses = (worker) => ({
  name: "addresses",
  /** @param {any} builder */
  setup(builder) {
    builder.onResolve(
      { filter: /\/vendor\/pdf\// },
      (/** @type {{path: string, resolveDir: string}} */ { path: asked, resolveDir }) => ({
        path: path.relative(target, path.resolve(resolveDir, asked)),
        external: true,
      }),
    );
    builder.onLoad({ filter: /\.js$/ }, ({ path: file }) => {
      const text = readFileSync(file, "utf8");
      const contents = text.replace(OWN_ADDRESS, (_, quote, address) => {
        const place = path.resolve(path.dirname(file), address);
        const held =
          place === path.join(sources, WORKER) ? `./${worker}` : path.relative(target, place);
        return `new URL(${quote}${held}${quote}, import.meta["url"])`;
      });
      if (contents.includes("import.meta.url"))
        throw new Error(`${file}: an address that the bundle would lose`);
      return { contents, loader: "js" };
    });
  },
});

/**
 * @param {any} options
 * @returns {Promise<{files: Record<string, Uint8Array>, inputs: string[], outputs: Record<string,
 *   any>}>} names without folders
 */
async function bundled(options) {
  const { outputFiles, metafile } = await build({ ...OPTIONS, ...options });
  return {
    files: Object.fromEntries(
      outputFiles.map((/** @type {any} */ { path: file, contents }) => [
        path.basename(file),
        contents,
      ]),
    ),
    inputs: Object.keys(metafile.inputs),
    outputs: Object.fromEntries(
      Object.entries(metafile.outputs).map(([name, output]) => [path.basename(name), output]),
    ),
  };
}

/**
 * @param {Record<string, any>} outputs
 * @param {string} entry
 * @returns {string} the file that begins with a source
 */
const fileOf = (outputs, entry) =>
  Object.keys(outputs).find((name) => outputs[name].entryPoint === entry) ?? "";

/**
 * @param {Record<string, any>} outputs
 * @param {string} name
 * @param {Set<string>} [seen]
 * @returns {string[]} the file, and all that it imports at once
 */
function reached(outputs, name, seen = new Set()) {
  if (!seen.has(name)) {
    seen.add(name);
    for (const { kind, path: file } of outputs[name].imports) {
      if (kind === "import-statement") reached(outputs, path.basename(file), seen);
    }
  }
  return [...seen];
}

/** @returns {Promise<Record<string, string|Uint8Array>>} all files of static/dist, by name */
async function pages() {
  const worker = await bundled({ entryPoints: [WORKER] });
  const scripts = await bundled({
    entryPoints: SCRIPTS,
    splitting: true,
    plugins: [addresses(fileOf(worker.outputs, WORKER))],
  });
  const sheets = await bundled({ entryPoints: SHEETS });
  const made = { ...worker.files, ...scripts.files, ...sheets.files };
  const starts = Object.keys(scripts.outputs).filter((name) => scripts.outputs[name].entryPoint);
  const manifest = {
    // A source, and the files that a page loads for it: its own first, then those that it imports.
    entries: Object.fromEntries(
      [
        ...starts.map((name) => [scripts.outputs[name].entryPoint, reached(scripts.outputs, name)]),
        ...SHEETS.map((sheet) => [sheet, [fileOf(sheets.outputs, sheet)]]),
      ].sort(),
    ),
    files: Object.fromEntries(
      Object.entries(made)
        .map(([name, data]) => [name, digest(data)])
        .sort(),
    ),
    sources: Object.fromEntries(
      [...new Set([...worker.inputs, ...scripts.inputs, ...sheets.inputs])]
        .sort()
        .map((name) => [name, digest(readFileSync(path.join(sources, name)))]),
    ),
  };
  const large = Object.entries(made).filter(([, data]) => data.length > SMALL_BYTES);
  const packed = large.flatMap(([name, data]) => [
    [`${name}.gz`, gzipSync(data, { level: 9 })],
    [`${name}.br`, brotliCompressSync(data)],
  ]);
  return {
    ...made,
    ...Object.fromEntries(packed),
    "manifest.json": `${JSON.stringify(manifest, null, 1)}\n`,
  };
}

/**
 * The content of a file; packers differ from machine to machine, what they packed does not.
 * @param {string} name
 * @param {string|Uint8Array} data
 */
function content(name, data) {
  if (!isCompressed(name)) return Buffer.from(data);
  return name.endsWith(".br") ? brotliDecompressSync(data) : gunzipSync(data);
}

const made = await pages();
if (process.argv.includes("--check")) {
  const there = readdirSync(target);
  const wrong = [...new Set([...there, ...Object.keys(made)])].filter(
    (name) =>
      !made[name] ||
      !there.includes(name) ||
      !content(name, made[name]).equals(content(name, readFileSync(path.join(target, name)))),
  );
  if (wrong.length) {
    console.error(`static/dist is not of these sources; run: make pages\n  ${wrong.join("\n  ")}`);
    process.exitCode = 1;
  }
} else {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target);
  for (const [name, data] of Object.entries(made)) writeFileSync(path.join(target, name), data);
  for (const name of Object.keys(made).filter((one) => !isCompressed(one))) {
    console.log(
      name.padEnd(32),
      String(made[name].length).padStart(8),
      String(made[`${name}.br`]?.length ?? "").padStart(8),
    );
  }
}
