// Self-service sign-up (OpenID Connect Initiating User Registration 1.0), on a server where it is enabled.
import test, { after, before } from "node:test";
import assert from "node:assert/strict";
import { Portiere } from "../../interop/harness/portiere.js";
import { Application } from "../harness/application.js";
import { launch, Visitor } from "../harness/chromium.js";

const newcomer = { username: "grace", email: "grace@example.test", password: "nanoseconds of wire" };
let server;
let browser;
let app;
before(async () => {
  [server, browser] = await Promise.all([Portiere.start({ PORTIERE_SIGNUP_ENABLED: "true" }), launch()]);
  app = await Application.start(server, { id: "app" });
});
after(async () => {
  await Promise.all([browser.close(), app.stop()]);
  await server.stop();
});

test("discovery says so", () => {
  assert.ok(app.config.serverMetadata().prompt_values_supported.includes("create"));
});

test("prompt=create leads to the form; a new person ends at the application, with an address that is not proved", async () => {
  const guest = await Visitor.arrive(browser, server.issuer);
  await guest.page.goto(app.signInUrl({ prompt: "create" }));
  await guest.inspect();
  await guest.fill({ ...newcomer, password: "grace" });
  await guest.press("button.main");
  assert.equal(await guest.page.inputValue("#username"), newcomer.username);
  assert.ok(await guest.page.locator("#password-wrong").count());
  await guest.inspect();
  await guest.fill(newcomer);
  await guest.press("button.main");
  await guest.allow();
  const { value } = await app.shown(guest);
  assert.equal(value.preferred_username, newcomer.username);
  assert.equal(value.email_verified, false);
  await guest.leave();
});

test("the address of a person who did not prove it is no name to sign in with, and reserves nothing", async () => {
  const guest = await Visitor.arrive(browser, server.issuer);
  await guest.page.goto(app.signInUrl());
  await guest.signIn({ login: newcomer.email, password: newcomer.password });
  // Red where the message speaks of a wrong password alone: the person has typed the right one.
  assert.match(await guest.text('[role="alert"]'), /only once it is confirmed: otherwise use your username/);
  await guest.press('a[href*="/signup"]');
  await guest.fill({ ...newcomer, username: "hopper" });
  await guest.press("button.main");
  assert.ok(await guest.page.locator('button[value="allow"]').count());
  await guest.leave();
});

test("a username that is taken is refused beside its field", async () => {
  const guest = await Visitor.arrive(browser, server.issuer);
  await guest.page.goto(app.signInUrl({ prompt: "create" }));
  await guest.fill({ ...newcomer, username: newcomer.username.toUpperCase() });
  await guest.press("button.main");
  assert.equal(await guest.page.getAttribute("#username", "aria-invalid"), "true");
  await guest.leave();
});
