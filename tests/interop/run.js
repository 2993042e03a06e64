// `node run.js`: both libraries against one server.
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { runAll } from "./harness/runner.js";

const folder = fileURLToPath(new URL(".", import.meta.url));
const files = readdirSync(`${folder}/openid-client`).filter((name) => name.endsWith(".test.js")).map((name) => `openid-client/${name}`);

await runAll(folder, [
  [process.execPath, "--test", "--test-reporter=spec", ...files],
  [".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "authlib"],
]);
