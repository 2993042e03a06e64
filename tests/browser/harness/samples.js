// The sample pages that the server's own tests write (every page, every state worth seeing), served as the server would.
import http from "node:http";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const folder = path.resolve(fileURLToPath(new URL("../../../", import.meta.url)), process.env.PAGES_DIR ?? "target/pages");

const types = { ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".html": "text/html; charset=utf-8" };
const policy = [
  "default-src 'none'", "script-src 'nonce-r4nd0mNonce'", "style-src 'nonce-r4nd0mNonce'", "img-src 'self'", "connect-src 'self'",
  "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
].join("; ");

/** Serves the samples on a free port; answers their origin and how to stop. */
export async function serve() {
  const server = http.createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const body = await readFile(path.join(folder, path.normalize(pathname))).catch(() => undefined);
    const headers = { "content-type": types[path.extname(pathname)] ?? "text/plain", "content-security-policy": policy };
    response.writeHead(body ? 200 : 404, headers).end(body);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const stop = () => {
    server.closeAllConnections();
    return new Promise((done) => server.close(done));
  };
  return { origin: `http://127.0.0.1:${server.address().port}`, stop };
}

/** The names of all samples; empty where none were written. */
export async function names(language = "en") {
  const files = await readdir(path.join(folder, language)).catch(() => []);
  return files.filter((file) => file.endsWith(".html")).map((file) => path.basename(file, ".html")).sort();
}
