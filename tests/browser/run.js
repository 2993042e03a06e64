// `node run.js`: every page in Chromium, against one server.
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { runAll } from "../interop/harness/runner.js";

const folder = fileURLToPath(new URL(".", import.meta.url));
const files = readdirSync(`${folder}/pages`).filter((name) => name.endsWith(".test.js")).map((name) => `pages/${name}`);

// A page mostly waits: two files at a time.
await runAll(folder, [[process.execPath, "--test", "--test-concurrency=2", "--test-reporter=spec", ...files]]);
