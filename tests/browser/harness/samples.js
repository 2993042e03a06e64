// The sample pages that the server's own tests write: every page, every state worth seeing. A browser shows them at the
// address they were made for, with the policy that the server sends; nothing listens there.
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const origin = "http://localhost:8080";
const folder = path.resolve(fileURLToPath(new URL("../../../", import.meta.url)), process.env.PAGES_DIR ?? "target/pages");
const types = { ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".html": "text/html; charset=utf-8" };
const policy = [
  "default-src 'none'", "script-src 'nonce-r4nd0mNonce'", "style-src 'nonce-r4nd0mNonce'", "img-src 'self'", "connect-src 'self'",
  "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
].join("; ");
const endpoints = { authorization: "authorize", token: "token", userinfo: "userinfo" };
const metadata = {
  issuer: origin,
  ...Object.fromEntries(Object.entries(endpoints).map(([name, last]) => [`${name}_endpoint`, `${origin}/oauth2/${last}`])),
  jwks_uri: `${origin}/.well-known/jwks.json`,
};

/** Returns the names of all samples; empty if none were written. */
export async function names() {
  const files = await readdir(path.join(folder, "en")).catch(() => []);
  return files.filter((file) => file.endsWith(".html")).map((file) => path.basename(file, ".html")).sort();
}

/** Returns the report of a load that those tests write: a page in one file, of a server with a long name. */
export const report = () => readFile(path.join(folder, "reports", "load.html"), "utf8");

/** Serves the samples to the pages of a browser context. */
export async function show(context) {
  await context.route(`${origin}/**`, async (route) => {
    const { pathname } = new URL(route.request().url());
    if (pathname.startsWith("/.well-known/")) return route.fulfill({ json: metadata });
    // This script sends its page on before anybody can see it.
    if (pathname.startsWith("/assets/post.")) return route.fulfill({ contentType: types[".js"], body: "" });
    const body = await readFile(path.join(folder, path.normalize(pathname))).catch(() => undefined);
    const headers = { "content-type": types[path.extname(pathname)] ?? "text/plain", "content-security-policy": policy };
    return route.fulfill(body ? { body, headers } : { status: 404 });
  });
}
