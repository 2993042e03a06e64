// A token's life after it was issued: refresh, introspection (RFC 7662), revocation (RFC 7009), client_credentials.
import test, { before } from "node:test";
import assert from "node:assert/strict";
import * as oidc from "openid-client";
import { Application, server, unique } from "../harness/fixture.js";

let alice;
before(async () => { alice = await server.addUser(unique("alice")); });

test("RFC 9700 §4.14.2: refresh tokens rotate, and use of an old one ends the whole line", async () => {
  const application = await Application.register();
  const { tokens } = await application.signIn(alice);
  const second = await oidc.refreshTokenGrant(application.config, tokens.refresh_token);
  const third = await oidc.refreshTokenGrant(application.config, second.refresh_token);
  await assert.rejects(oidc.refreshTokenGrant(application.config, tokens.refresh_token), { error: "invalid_grant" });
  await assert.rejects(oidc.refreshTokenGrant(application.config, third.refresh_token), { error: "invalid_grant" });
});

test("a lost answer signs nobody out: the predecessor gets the same successor again", async () => {
  const application = await Application.register();
  const { tokens } = await application.signIn(alice);
  const answers = await Promise.all([1, 2, 3].map(() => oidc.refreshTokenGrant(application.config, tokens.refresh_token)));
  assert.equal(new Set(answers.map(({ refresh_token }) => refresh_token)).size, 1);
  await oidc.refreshTokenGrant(application.config, answers[0].refresh_token);
});

test("RFC 6749 §6: a refresh may narrow the scope and never widen it", async () => {
  const application = await Application.register();
  const { tokens } = await application.signIn(alice, { scope: "openid profile" });
  const narrow = await oidc.refreshTokenGrant(application.config, tokens.refresh_token, { scope: "openid" });
  assert.equal(narrow.scope, "openid");
  await assert.rejects(
    oidc.refreshTokenGrant(application.config, narrow.refresh_token, { scope: "openid email" }),
    { error: "invalid_scope" },
  );
});

test("RFC 6749 §6: a refresh token is its own client's", async () => {
  const [application, other] = await Promise.all([Application.register(), Application.register()]);
  const { tokens } = await application.signIn(alice);
  await assert.rejects(oidc.refreshTokenGrant(other.config, tokens.refresh_token), { error: "invalid_grant" });
});

for (const kind of ["jwt", "opaque"]) {
  test(`RFC 7662 §2.2: introspection describes a live token (${kind})`, async () => {
    const application = await Application.register({ accessToken: kind });
    const { tokens, claims } = await application.signIn(alice, { scope: "openid profile" });
    assert.equal(tokens.access_token.split(".").length, kind === "jwt" ? 3 : 1);
    const answer = await oidc.tokenIntrospection(application.config, tokens.access_token);
    assert.equal(answer.active, true);
    assert.equal(answer.client_id, application.id);
    assert.equal(answer.sub, claims.sub);
    assert.deepEqual(answer.scope.split(" ").sort(), ["openid", "profile"]);
    assert.ok(answer.exp > Date.now() / 1000);
  });

  test(`RFC 7009 §2.1: a revoked access token is dead at once at every endpoint (${kind})`, async () => {
    const application = await Application.register({ accessToken: kind });
    const { tokens, claims } = await application.signIn(alice);
    await oidc.tokenRevocation(application.config, tokens.access_token);
    assert.deepEqual(await oidc.tokenIntrospection(application.config, tokens.access_token), { active: false });
    await assert.rejects(oidc.fetchUserInfo(application.config, tokens.access_token, claims.sub), { status: 401 });
  });
}

test("RFC 7662 §2.2: an unknown token is inactive, and nothing else is said", async () => {
  const application = await Application.register();
  assert.deepEqual(await oidc.tokenIntrospection(application.config, "no-such-token"), { active: false });
});

test("RFC 7662 §4: another application's token is inactive too", async () => {
  const [application, other] = await Promise.all([Application.register(), Application.register()]);
  const { tokens } = await application.signIn(alice);
  assert.deepEqual(await oidc.tokenIntrospection(other.config, tokens.access_token), { active: false });
});

test("RFC 7009 §2.1: revoking the refresh token ends the access tokens of its line", async () => {
  const application = await Application.register();
  const { tokens } = await application.signIn(alice);
  await oidc.tokenRevocation(application.config, tokens.refresh_token);
  await assert.rejects(oidc.refreshTokenGrant(application.config, tokens.refresh_token), { error: "invalid_grant" });
  assert.deepEqual(await oidc.tokenIntrospection(application.config, tokens.access_token), { active: false });
});

test("RFC 7009 §2.2: revoking what is unknown succeeds", async () => {
  await oidc.tokenRevocation((await Application.register()).config, "no-such-token");
});

test("RFC 6749 §4.4: client_credentials, without a refresh token and without a person", async () => {
  const application = await Application.register({ grant: "client_credentials", scope: ["invoices:read"] });
  const tokens = await oidc.clientCredentialsGrant(application.config, { scope: "invoices:read" });
  assert.equal(tokens.refresh_token, undefined);
  assert.equal(tokens.id_token, undefined);
  const answer = await oidc.tokenIntrospection(application.config, tokens.access_token);
  assert.equal(answer.active, true);
  assert.equal(answer.scope, "invoices:read");
});

test("RFC 6749 §5.2: a grant that the client does not have is unauthorized_client", async () => {
  const application = await Application.register();
  await assert.rejects(oidc.clientCredentialsGrant(application.config), { error: "unauthorized_client" });
});
