// The setup of every test file: the server, the browser, people and applications, all removed at the end.
import { after } from "node:test";
import assert from "node:assert/strict";
import { Portiere } from "../../interop/harness/portiere.js";
import { Application } from "./application.js";
import { launch, Visitor } from "./chromium.js";

const attached = Portiere.attach();
export const server = attached ?? (await Portiere.start());
export const browser = await launch();
const applications = [];

after(async () => {
  await browser.close();
  await Promise.all(applications.map((application) => application.stop()));
  if (!attached) await server.stop();
});

let counter = 0;
/** A name that no other test of this run uses. */
export const unique = (word) => `${word}-${process.pid}-${++counter}`;

export const person = (word = "alice") => server.addUser(unique(word));
export const visitor = (options) => Visitor.arrive(browser, server.issuer, options);

export async function application(options = {}) {
  const started = await Application.start(server, { id: unique("app"), ...options });
  applications.push(started);
  return started;
}

/** Goes from the application's button through login and consent back to the application. */
export async function signInAt(app, guest, user, parameters) {
  await guest.page.goto(app.signInUrl(parameters));
  if (await guest.page.locator("#password").count()) await guest.signIn(user);
  if (await guest.page.locator('button[value="allow"]').count()) await guest.allow();
  const shown = await app.shown(guest);
  assert.equal(shown.title, "Signed in", JSON.stringify(shown.value));
  return shown.value;
}
