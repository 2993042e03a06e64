// ID tokens (OpenID Connect Core §2): signed as the client is registered, and true to what happened.
import test, { before } from "node:test";
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from "jose";
import * as oidc from "openid-client";
import { Application, server, unique } from "../harness/fixture.js";

let alice;
before(async () => { alice = await server.addUser(unique("alice")); });

const halfHash = (token) => createHash("sha256").update(token).digest().subarray(0, 16).toString("base64url");

for (const alg of ["RS256", "ES256", "EdDSA"]) {
  test(`an ID token is signed with ${alg} where the client asks for it, and still is after a refresh`, async () => {
    const application = await Application.register({ idTokenAlg: alg, metadata: { id_token_signed_response_alg: alg } });
    const { tokens, claims } = await application.signIn(alice);
    const { jwks_uri } = application.config.serverMetadata();
    const keys = createRemoteJWKSet(new URL(jwks_uri));
    const { protectedHeader } = await jwtVerify(tokens.id_token, keys, { audience: application.id, issuer: server.issuer });
    assert.equal(protectedHeader.alg, alg);
    assert.equal(protectedHeader.typ, "JWT");
    if (alg !== "EdDSA") assert.equal(claims.at_hash, halfHash(tokens.access_token));
    const next = await oidc.refreshTokenGrant(application.config, tokens.refresh_token);
    assert.equal(decodeProtectedHeader(next.id_token).alg, alg);
  });
}

test("RS256 is what a client gets that says nothing (OpenID Connect Dynamic Client Registration §2)", async () => {
  const { tokens } = await (await Application.register()).signIn(alice);
  assert.equal(decodeProtectedHeader(tokens.id_token).alg, "RS256");
});

test("OpenID Connect Core §2: the claims say who, when and how", async () => {
  const before = Math.floor(Date.now() / 1000);
  const application = await Application.register();
  const { claims } = await application.signIn(alice);
  assert.equal(claims.aud, application.id);
  assert.ok(claims.sub && claims.sub.length <= 255 && !claims.sub.includes(alice.login));
  assert.ok(claims.sid);
  assert.deepEqual(claims.amr, ["pwd"]);
  assert.ok(claims.auth_time >= before - 1 && claims.auth_time <= claims.iat);
  assert.equal(claims.exp - claims.iat, 15 * 60);
  assert.ok(!("email" in claims) && !("name" in claims), "profile claims are userinfo's");
});

test("OpenID Connect Core §12.2: a refreshed ID token keeps sub, auth_time and sid, and has a new iat", async () => {
  const application = await Application.register();
  const { tokens, claims } = await application.signIn(alice);
  const next = (await oidc.refreshTokenGrant(application.config, tokens.refresh_token)).claims();
  for (const name of ["iss", "sub", "aud", "auth_time", "sid"]) assert.deepEqual(next[name], claims[name], name);
  assert.ok(next.iat >= claims.iat);
});

test("OpenID Connect Core §5.5: the claims parameter puts a claim into the ID token", async () => {
  const application = await Application.register();
  const asked = { scope: "openid email", claims: JSON.stringify({ id_token: { email: { essential: true } } }) };
  const { claims } = await application.signIn(alice, asked);
  assert.equal(claims.email, `${alice.login}@example.test`);
});

test("RFC 9068 §2.1: an access token is another kind of token", async () => {
  const { tokens } = await (await Application.register()).signIn(alice);
  const header = decodeProtectedHeader(tokens.access_token);
  assert.equal(header.typ, "at+jwt");
  assert.equal(header.alg, "ES256");
});
