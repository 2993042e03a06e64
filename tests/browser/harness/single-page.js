// A single-page application on its own origin, signing people in with oidc-client-ts as its documentation shows.
import http from "node:http";
import { readFile } from "node:fs/promises";

const library = await readFile(new URL("../node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js", import.meta.url));

/** Each of its pages: the library, a manager, and in the iframe the code that passes the answer outwards. */
const page = (settings) => `<!doctype html><html lang="en"><title>Single page</title><script src="/oidc.js"></script><script>
  const manager = new oidc.UserManager(${JSON.stringify(settings)});
  if (location.pathname === "/silent") manager.signinSilentCallback();
</script></html>`;

export class SinglePage {
  /** Registers an application at `server` and starts it on `host`; `options` are those of `client add`. */
  static async start(server, { id, host = "localhost", ...options }) {
    const app = new SinglePage();
    app.http = http.createServer((request, response) => app.#answer(request, response));
    await new Promise((done) => app.http.listen(0, "127.0.0.1", done));
    app.http.unref();
    app.origin = `http://${host}:${app.http.address().port}`;
    const at = (path) => app.origin + path;
    await server.addClient(id, { public: true, redirectUri: [at("/callback"), at("/silent")], postLogoutRedirectUri: at("/"), ...options });
    app.settings = {
      authority: server.issuer,
      client_id: id,
      redirect_uri: at("/callback"),
      silent_redirect_uri: at("/silent"),
      post_logout_redirect_uri: at("/"),
      scope: "openid profile email",
      loadUserInfo: true,
      revokeTokensOnSignout: true,
      // The machine may stall for a moment.
      silentRequestTimeoutInSeconds: 60,
    };
    return app;
  }

  stop() {
    this.http.closeAllConnections();
    return new Promise((done) => this.http.close(done));
  }

  #answer(request, response) {
    const script = request.url === "/oidc.js";
    response.setHeader("Content-Type", script ? "text/javascript" : "text/html").end(script ? library : page(this.settings));
  }
}
