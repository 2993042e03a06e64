// The setup of every test file: the server (the one that was started for all files, or one of its own), and a relying
// party that uses openid-client, for an application registered there.
import { after } from "node:test";
import assert from "node:assert/strict";
import * as oidc from "openid-client";
import { Agent, proceed } from "./agent.js";
import { Portiere } from "./portiere.js";

/** Nothing listens there: tests check the address that the browser is redirected to. */
export const callback = "https://app.example.test/callback";

const attached = Portiere.attach();
export const server = attached ?? (await Portiere.start());
if (!attached) after(() => server.stop());

let counter = 0;
/** A name that no other test of this run uses. */
export const unique = (word) => `${word}-${process.pid}-${++counter}`;

/** Our endpoints use http on loopback, which the library has to be told to allow. */
const options = { execute: [oidc.allowInsecureRequests] };

/** An application that signs people in: `authentication` makes the library's client authentication from the secret. */
export class Application {
  static async register({ authentication = oidc.ClientSecretBasic, metadata = {}, redirectUri = callback, ...rest } = {}) {
    const { id, secret } = await server.addClient(unique("app"), { redirectUri, ...rest });
    const config = await oidc.discovery(new URL(server.issuer), id, metadata, authentication(secret), options);
    return new Application(id, config, [redirectUri].flat()[0]);
  }

  constructor(id, config, redirectUri) {
    Object.assign(this, { id, config, redirectUri });
  }

  /** Returns an authorization request with PKCE, state and nonce, and what is needed to check its response. */
  async request(parameters = {}) {
    const checks = { pkceCodeVerifier: oidc.randomPKCECodeVerifier(), expectedState: oidc.randomState(), expectedNonce: oidc.randomNonce() };
    const url = oidc.buildAuthorizationUrl(this.config, {
      redirect_uri: this.redirectUri,
      scope: "openid",
      code_challenge: await oidc.calculatePKCECodeChallenge(checks.pkceCodeVerifier),
      code_challenge_method: "S256",
      state: checks.expectedState,
      nonce: checks.expectedNonce,
      ...parameters,
    });
    return { url, checks: { ...checks, idTokenExpected: true } };
  }

  /** Signs `user` in from an empty browser (or from `agent`) and redeems the code. */
  async signIn(user, parameters = {}, agent = new Agent(server.issuer)) {
    const { url, checks } = await this.request(parameters);
    const page = await proceed(agent, await agent.open(url), user);
    assert.ok(page.left, `the browser should be back at the application, and is at ${page.url}: ${page.status} ${page.text}`);
    const tokens = await oidc.authorizationCodeGrant(this.config, page.left, checks);
    return { agent, tokens, claims: tokens.claims() };
  }
}
