// Builds the page into dist, which is committed and embedded in the daemon.
//
//   node build.mjs            build
//   node build.mjs --verify   fail if dist is not what the sources make
//   node build.mjs --test     bundle the tests into .test/all.mjs, for node --test
//
// The same sources and the same versions in package-lock.json make the same bytes.
import { build } from "esbuild";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

const root = import.meta.dirname;
const dist = join(root, "dist");

const bundled = ["preact", "@preact/signals", "@preact/signals-core"]; // their licenses go with them

const options = {
  absWorkingDir: root,
  outdir: "dist",
  entryNames: "assets/[name]-[hash]",
  assetNames: "assets/[name]-[hash]",
  bundle: true,
  format: "esm",
  target: ["chrome123", "firefox120", "safari17.5"],
  minify: true,
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  write: false,
};

/** files makes the page in memory: contents by path. The names of the assets change with their contents. */
async function files() {
  const made = new Map();
  const add = async (entry, define = {}) => {
    const { outputFiles } = await build({ ...options, entryPoints: [entry], define });
    const [file] = outputFiles;
    const path = relative(dist, file.path);
    made.set(path, Buffer.from(file.contents));
    return `/${path}`;
  };
  const worker = await add("src/worker.ts");
  const script = await add("src/app.tsx", { WORKER: JSON.stringify(worker) });
  const style = await add("src/app.css");
  const html = await readFile(join(root, "src/index.html"), "utf8");
  made.set("index.html", Buffer.from(html.replace("SCRIPT", script).replace("STYLE", style)));
  made.set("assets/icon.svg", await readFile(join(root, "src/icon.svg")));
  const licenses = bundled.map(async (name) => `${name}\n\n${await readFile(join(root, "node_modules", name, "LICENSE"), "utf8")}`);
  made.set("assets/licenses.txt", Buffer.from((await Promise.all(licenses)).join("\n")));
  return made;
}

/** present are the paths of the files in dist. */
async function present() {
  const entries = await readdir(dist, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries.filter((e) => e.isFile()).map((e) => relative(dist, join(e.parentPath, e.name)));
}

async function write() {
  const made = await files();
  for (const [path, bytes] of made) {
    await mkdir(dirname(join(dist, path)), { recursive: true });
    await writeFile(join(dist, path), bytes);
  }
  for (const path of await present()) if (!made.has(path)) await rm(join(dist, path));
}

async function verify() {
  const made = await files();
  const wrong = (await present()).filter((path) => !made.has(path));
  for (const [path, bytes] of made) {
    const is = await readFile(join(dist, path)).catch(() => Buffer.alloc(0));
    if (!is.equals(bytes)) wrong.push(path);
  }
  if (wrong.length > 0) throw new Error(`not what the sources make, run npm run build and commit dist: ${wrong.join(", ")}`);
}

async function tests() {
  const names = (await readdir(join(root, "test"))).filter((name) => name.endsWith(".test.ts"));
  await rm(join(root, ".test"), { recursive: true, force: true });
  await build({
    absWorkingDir: root,
    stdin: { contents: names.map((name) => `import "./test/${name}";`).join("\n"), resolveDir: root },
    outfile: ".test/all.mjs",
    bundle: true,
    platform: "node",
    format: "esm",
    sourcemap: "inline",
  });
}

const modes = { "--verify": verify, "--test": tests };
await (modes[process.argv[2]] ?? write)();
