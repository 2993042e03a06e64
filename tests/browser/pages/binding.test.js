// What one browser began, another cannot continue (attacks SE-01 and CO-07).
import test from "node:test";
import assert from "node:assert/strict";
import { application, person, server, visitor } from "../harness/fixture.js";

const flow = (guest) => guest.page.inputValue('input[name="flow"] >> nth=0');

/** Puts another browser's flow into every form of the page. */
const plant = (guest, value) => guest.page.locator('input[name="flow"]').evaluateAll((inputs, planted) => {
  for (const input of inputs) input.value = planted;
}, value);

const sessions = async (guest) => (await guest.context.cookies(server.issuer)).filter(({ name }) => name.startsWith("sid-"));

test("SE-01: a login begun in one browser cannot be finished in another", async () => {
  const [app, alice, attacker, victim] = await Promise.all([application(), person(), visitor(), visitor()]);
  await attacker.page.goto(app.signInUrl());
  await victim.page.goto(app.signInUrl());
  await plant(victim, await flow(attacker));
  const status = await victim.signIn(alice);
  assert.ok(status >= 400 && status < 500, `HTTP ${status}`);
  assert.deepEqual(await sessions(victim), []);
  await victim.inspect();
  await attacker.open("/account");
  assert.equal(await attacker.page.locator("#password").count(), 1, "the attacker is not signed in");
  await Promise.all([attacker.leave(), victim.leave()]);
});

test("SE-01: the address of a login page carries nothing over to another browser", async () => {
  const [app, alice, attacker, victim] = await Promise.all([application(), person(), visitor(), visitor()]);
  await attacker.page.goto(app.signInUrl());
  await attacker.signIn({ ...alice, password: "wrong" });
  const begun = await flow(attacker);
  await victim.open(attacker.page.url());
  const shown = await victim.page.locator('input[name="flow"]').evaluateAll((inputs) => inputs.map(({ value }) => value));
  assert.ok(!shown.includes(begun));
  await Promise.all([attacker.leave(), victim.leave()]);
});

test("CO-07: a consent asked of one person cannot be given by another", async () => {
  const [app, alice, mallory, attacker, victim] = await Promise.all([application(), person(), person("mallory"), visitor(), visitor()]);
  await attacker.page.goto(app.signInUrl());
  await attacker.signIn(mallory);
  await victim.page.goto(app.signInUrl());
  await victim.signIn(alice);
  await plant(victim, await flow(attacker));
  const status = await victim.allow();
  assert.ok(status >= 400 && status < 500, `HTTP ${status}`);
  assert.ok(victim.page.url().startsWith(server.issuer), "no code leaves the server");
  await Promise.all([attacker.leave(), victim.leave()]);
});

test("a session is another one after signing in (session fixation)", async () => {
  const [app, alice, guest] = await Promise.all([application(), person(), visitor()]);
  await guest.page.goto(app.signInUrl());
  const before = new Set((await guest.context.cookies(server.issuer)).map(({ value }) => value));
  await guest.signIn(alice);
  const [session] = await sessions(guest);
  assert.ok(session && !before.has(session.value));
  await guest.leave();
});
