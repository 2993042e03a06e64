// OpenID Connect Discovery 1.0, RFC 8414 and RFC 7517: what a library first learns about the server.
import test from "node:test";
import assert from "node:assert/strict";
import * as oidc from "openid-client";
import { server } from "../harness/fixture.js";

const discover = (algorithm) =>
  oidc.discovery(new URL(server.issuer), "anybody", {}, oidc.None(), { algorithm, execute: [oidc.allowInsecureRequests] });

test("OpenID Connect Discovery §4 and RFC 8414 §3 describe the same server", async () => {
  const [openid, oauth] = await Promise.all(["oidc", "oauth2"].map(discover));
  assert.deepEqual(openid.serverMetadata(), oauth.serverMetadata());
  assert.equal(openid.serverMetadata().issuer, server.issuer);
});

test("OpenID Connect Discovery §3: what is not supported is said by name", async () => {
  const metadata = (await discover("oidc")).serverMetadata();
  assert.equal(metadata.request_uri_parameter_supported, false, "left out it would mean true");
  assert.equal(metadata.claims_parameter_supported, true);
  assert.equal(metadata.authorization_response_iss_parameter_supported, true);
  assert.deepEqual(metadata.response_types_supported, ["code"]);
  assert.deepEqual(metadata.code_challenge_methods_supported, ["S256"]);
  assert.deepEqual(new Set(metadata.response_modes_supported), new Set(["query", "fragment", "form_post"]));
  assert.deepEqual(new Set(metadata.prompt_values_supported), new Set(["none", "login", "consent", "select_account"]), "create is for servers with sign-up");
  assert.deepEqual(new Set(metadata.id_token_signing_alg_values_supported), new Set(["RS256", "ES256", "EdDSA"]));
  for (const grant of ["authorization_code", "refresh_token", "client_credentials", "urn:ietf:params:oauth:grant-type:device_code"]) {
    assert.ok(metadata.grant_types_supported.includes(grant), grant);
  }
});

test("every endpoint lies at the issuer", async () => {
  const metadata = (await discover("oidc")).serverMetadata();
  const paths = {
    authorization_endpoint: "/oauth2/authorize",
    token_endpoint: "/oauth2/token",
    userinfo_endpoint: "/oauth2/userinfo",
    introspection_endpoint: "/oauth2/introspect",
    revocation_endpoint: "/oauth2/revoke",
    device_authorization_endpoint: "/oauth2/device",
    end_session_endpoint: "/oauth2/logout",
  };
  for (const [name, path] of Object.entries(paths)) assert.equal(metadata[name], server.issuer + path, name);
});

test("RFC 7517 §5: the key set has a key for each algorithm, no private part, and may be cached", async () => {
  const metadata = (await discover("oidc")).serverMetadata();
  const answer = await fetch(metadata.jwks_uri);
  const { keys } = await answer.json();
  assert.match(answer.headers.get("cache-control"), /public.*max-age=\d+/);
  assert.equal(new Set(keys.map(({ kid }) => kid)).size, keys.length, "a kid names one key");
  for (const alg of metadata.id_token_signing_alg_values_supported) assert.ok(keys.some((key) => key.alg === alg), alg);
  for (const key of keys) for (const secret of ["d", "p", "q", "dp", "dq", "qi", "k"]) assert.ok(!(secret in key), secret);
});
