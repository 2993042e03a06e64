// Runs test programs against one server, which is started before the first and must end successfully after the last.
import { spawn } from "node:child_process";
import { Portiere } from "./portiere.js";

/** Longer than any of them takes on a slow machine; a program that still runs after that hangs. */
const patience = 15 * 60_000;

/** Runs a program and shows its output; returns exit code and output. */
async function run([program, ...args], options) {
  const child = spawn(program, args, { ...options, timeout: patience, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const [from, to] of [[child.stdout, process.stdout], [child.stderr, process.stderr]]) {
    from.setEncoding("utf8").on("data", (text) => {
      output += text;
      to.write(text);
    });
  }
  const code = await new Promise((done, failed) => child.once("error", failed).once("close", done));
  return { code, output };
}

/** Returns the last number before or after `word` in a summary: `5 passed` of pytest, `pass 5` of node's runner. */
function counted(output, ...patterns) {
  for (const pattern of patterns) {
    const found = [...output.matchAll(pattern)].at(-1);
    if (found) return Number(found[1]);
  }
  return 0;
}

/** Runs each command (a list of words) in `folder`; exits with 1 if anything failed. The last line counts the tests. */
export async function runAll(folder, commands, settings = {}) {
  const server = await Portiere.start(settings);
  let [passed, failed, code] = [0, 0, 0];
  for (const command of commands) {
    const env = { ...process.env, NO_COLOR: "1", ...server.environment };
    const done = await run(command, { cwd: folder, env });
    passed += counted(done.output, /^ℹ pass (\d+)$/gm, /(\d+) passed/g);
    failed += counted(done.output, /^ℹ fail (\d+)$/gm, /(\d+) (?:failed|errors?)/g);
    code ||= done.code ?? 1;
  }
  await server.stop().catch((error) => {
    console.error(error.message);
    [failed, code] = [failed + 1, 1];
  });
  if (code) console.error(`The server's log:\n${server.log}`);
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = code ? 1 : 0;
}
