// The device flow's pages (RFC 8628 §3.3).
import test, { before } from "node:test";
import assert from "node:assert/strict";
import * as oidc from "openid-client";
import { application, person, visitor } from "../harness/fixture.js";

const grant = "urn:ietf:params:oauth:grant-type:device_code";
let television;
let alice;
before(async () => { [television, alice] = await Promise.all([application({ secretless: true, grant }), person()]); });

const begin = () => oidc.initiateDeviceAuthorization(television.config, { scope: "openid profile" });
const poll = (device) => oidc.pollDeviceAuthorizationGrant(television.config, device);

/** Signs in at the device page, and enters the code unless the link contained it. */
async function enter(url, code) {
  const guest = await visitor();
  await guest.open(url);
  if (await guest.page.locator("#password").count()) await guest.signIn(alice);
  await guest.inspect();
  if (code) await guest.fill({ user_code: code });
  if (await guest.page.locator("input#user_code").count()) await guest.press("button.main");
  return guest;
}

test("a person enters the code, sees who asks, and approves", async () => {
  const device = await begin();
  const guest = await enter(device.verification_uri, device.user_code);
  const text = await guest.text();
  for (const shown of [television.id, device.user_code, alice.login, "127.0.0.1"]) assert.ok(text.includes(shown), shown);
  await guest.inspect();
  await guest.allow();
  await guest.inspect();
  assert.equal((await poll(device)).claims().aud, television.id);
  await guest.leave();
});

test("a link with the code in it still asks (attack DV-04), and a person may say no", async () => {
  const device = await begin();
  const guest = await enter(device.verification_uri_complete);
  await guest.deny();
  await guest.inspect();
  await assert.rejects(poll(device), { error: "access_denied" });
  await guest.leave();
});

test("who is not the person signed in signs in as another, and is asked about the same code", async () => {
  // Red without the flow of the page, or where the sign-in leads to the account.
  const [device, bob] = await Promise.all([begin(), person("bob")]);
  const guest = await enter(device.verification_uri, device.user_code);
  await guest.press('button[value="other"]');
  await guest.signIn(bob);
  assert.equal(await guest.page.inputValue("#user_code"), device.user_code);
  await guest.press("button.main");
  const text = await guest.text();
  for (const shown of [device.user_code, bob.login]) assert.ok(text.includes(shown), shown);
  assert.ok(!text.includes(alice.login), text);
  await guest.inspect();
  await guest.allow();
  await guest.leave();
});

test("a code that no device waits for is refused on the same page", async () => {
  const { verification_uri } = await begin();
  const guest = await enter(verification_uri, "BBBB-BBBB");
  assert.equal(await guest.page.getAttribute("#user_code", "aria-invalid"), "true");
  await guest.inspect();
  await guest.leave();
});
