// A server under test: the real binary on a free loopback port with its own data folder, managed through its command
// line.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { randomBytes, randomInt } from "node:crypto";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const binary = path.resolve(root, process.env.PORTIERE_BINARY ?? "target/debug/portiere");
const patience = 60_000;

/** Returns a TCP port on 127.0.0.1 that is free at the moment and that the system does not hand out before it is taken:
 * ports for connections and for programs that ask for any port begin at 32768 (Linux) or higher. */
export async function freePort() {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    const server = createServer();
    const free = await new Promise((done) => {
      server.once("error", () => done(false));
      server.listen(port, "127.0.0.1", () => server.close(() => done(true)));
    });
    if (free) return port;
  }
}

/** Returns 256 bits as text; in the standard alphabet on purpose: `+`, `/` and `=` have to survive every encoding on
 * the way. */
export const newSecret = () => randomBytes(32).toString("base64");

export class Portiere {
  #process;
  #log = "";
  #ended;

  /** Starts a server; `settings` are environment variables such as `PORTIERE_TOKEN_ACCESS_TTL`. */
  static async start(settings = {}) {
    const folder = await mkdtemp(path.join(tmpdir(), "portiere-test-"));
    const server = new Portiere(`http://localhost:${await freePort()}`, folder);
    await server.#serve(settings);
    return server;
  }

  /** Returns the server that `environment` describes, which the parent process started. */
  static attach() {
    const { PORTIERE_TEST_ISSUER: issuer, PORTIERE_TEST_FOLDER: folder } = process.env;
    return issuer && folder ? new Portiere(issuer, folder) : undefined;
  }

  constructor(issuer, folder) {
    this.issuer = issuer;
    this.folder = folder;
    this.data = path.join(folder, "data");
  }

  /** The variables that let another process attach. */
  get environment() {
    return { PORTIERE_TEST_ISSUER: this.issuer, PORTIERE_TEST_FOLDER: this.folder };
  }

  /** Returns everything that the server has logged. */
  get log() {
    return this.#log;
  }

  async #serve(settings) {
    const listen = `127.0.0.1:${new URL(this.issuer).port}`;
    const args = ["serve", "--data", this.data, "--listen", listen];
    this.#process = spawn(binary, args, { env: { ...process.env, ...settings }, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => { this.#log += text; });
    }
    this.#ended = new Promise((done) => this.#process.once("close", (code, signal) => done({ code, signal })));
    this.#process.once("error", (error) => { this.#log += `${binary}: ${error.message}\n`; });
    await this.#ready();
  }

  async #ready() {
    const until = Date.now() + patience;
    while (Date.now() < until && this.#process.exitCode === null && this.#process.pid) {
      const answer = await fetch(`${this.issuer}/readyz`).catch(() => undefined);
      if (answer?.ok) return;
      await new Promise((done) => setTimeout(done, 25));
    }
    this.#process.kill("SIGKILL");
    throw new Error(`the server did not become ready:\n${this.#log}`);
  }

  /** Asks the server to stop and waits for it; removes its folder. Throws unless the exit code is 0. */
  async stop() {
    this.#process.kill("SIGTERM");
    const late = setTimeout(() => this.#process.kill("SIGKILL"), patience);
    const { code, signal } = await this.#ended;
    clearTimeout(late);
    await rm(this.folder, { recursive: true, force: true });
    if (code !== 0) throw new Error(`after SIGTERM the server ended with ${signal ?? `exit code ${code}`}:\n${this.#log}`);
  }

  /** Runs a command such as `["user", "list"]` on this server's data; returns its output, parsed as JSON. */
  async command(words, input = "") {
    const child = spawn(binary, [...words, "--data", this.data, "--json"], { stdio: "pipe" });
    let [out, error] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text) => { out += text; });
    child.stderr.setEncoding("utf8").on("data", (text) => { error += text; });
    child.stdin.on("error", () => {}).end(input);
    const code = await new Promise((done, failed) => child.once("error", failed).once("close", done));
    if (code !== 0) throw new Error(`portiere ${words.join(" ")}: exit code ${code}\n${error}${out}`);
    return out.trim() ? JSON.parse(out) : undefined;
  }

  /** Adds a person; returns their credentials. */
  async addUser(name, password = `${name}: correct horse battery staple`) {
    await this.command(["user", "add", name, "--email", `${name}@example.test`, "--password-stdin"], `${password}\n`);
    return { login: name, password };
  }

  /**
   * Adds an application. `options` are those of `client add` in camel case: text, a list of texts, or true for a flag.
   * Unless it is public or has a key set (`jwks`, an object), it gets a secret.
   */
  async addClient(id, { jwks, ...options }) {
    const words = ["client", "add", "--id", id];
    for (const [name, value] of Object.entries({ name: `The application ${id}`, ...options })) {
      const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
      for (const item of [value].flat()) words.push(...(item === true ? [flag] : [flag, item]));
    }
    if (jwks) {
      const file = path.join(this.folder, `${id}.jwks.json`);
      await writeFile(file, JSON.stringify(jwks));
      words.push("--jwks", file);
    }
    const secret = options.public || jwks ? undefined : newSecret();
    if (secret) words.push("--secret-stdin");
    await this.command(words, secret ? `${secret}\n` : "");
    return { id, secret };
  }

  /** Returns the one-time link that creates the first account. */
  async setupLink() {
    return (await readFile(path.join(this.data, "setup-link"), "utf8")).trim();
  }
}
