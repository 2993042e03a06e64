// Every page in every state, also those that are hard to come by in a running server: accessible on a phone and on a
// desktop, light and dark. German, whose words are the longest, must not make a phone scroll sideways.
import test, { after, before } from "node:test";
import assert from "node:assert/strict";
import { launch, Visitor } from "../harness/chromium.js";
import { names, serve } from "../harness/samples.js";

// `post.js` sends this page on at once, and "Try it" asks a server that is not there.
const active = ["form_post", "try"];
let samples;
let browser;
before(async () => { [samples, browser] = await Promise.all([serve(), launch()]); });
after(async () => {
  await browser.close();
  await samples.stop();
});

const pages = (await names()).filter((name) => !active.includes(name));

test("the samples are there", () => assert.ok(pages.length >= 30, `${pages.length} pages`));

for (const name of pages) {
  test(`sample ${name}`, async () => {
    const guest = await Visitor.arrive(browser, samples.origin);
    await guest.open(`/en/${name}.html`);
    await guest.inspect();
    await guest.page.setViewportSize({ width: 390, height: 844 });
    await guest.open(`/de/${name}.html`);
    const { scrollWidth, clientWidth } = await guest.page.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      return { scrollWidth, clientWidth };
    });
    assert.ok(scrollWidth <= clientWidth, `${scrollWidth} px in ${clientWidth}`);
    await guest.leave();
  });
}
