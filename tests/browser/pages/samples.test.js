// Every page in every state, including those that are hard to reach in a running server: accessible on a phone and on a
// desktop, light and dark. German has the longest words, and must not make a phone scroll sideways.
import test, { after, before } from "node:test";
import assert from "node:assert/strict";
import { launch, violations, viewports, Visitor } from "../harness/chromium.js";
import { names, origin, report, show } from "../harness/samples.js";

let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const pages = await names();

/** Returns by how much a page is wider than the window. */
const over = (page) => page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth));

test("the samples are there", () => assert.ok(pages.length >= 30, `${pages.length} pages`));

test("a page that is wrong is found out", async () => {
  const page = await browser.newPage();
  await page.setContent('<title>x</title><img src="x:"><input style="width: 2000px"><p style="color: #aaa">pale</p><p style="display: flex">to <b>x</b></p>');
  const found = (await violations(page)).join("\n");
  for (const rule of ["image-alt", "label", "color-contrast", "scrolls sideways", "words run together"]) assert.match(found, new RegExp(rule));
  await page.close();
});

test("what was wrong has the focus where no field has it", async () => {
  const guest = await Visitor.arrive(browser, origin);
  await show(guest.context);
  await guest.open("/en/signup_later.html");
  assert.equal(await guest.page.evaluate(() => document.activeElement.matches(".alert.bad")), true);
  await guest.leave();
});

test("the report of a load fits a phone, and the letters of its pictures can be read there", async () => {
  // Red without overflow-wrap in its style.css, and with a picture that is narrower than its 720 units.
  const page = await browser.newPage();
  await page.setContent(await report());
  for (const width of [320, 390]) {
    await page.setViewportSize({ width, height: 640 });
    assert.equal(await over(page), 0, `${width} px`);
    const letters = await page.evaluate(() => [...document.querySelectorAll("svg")].map((svg) => svg.getBoundingClientRect().width / 720 * 12));
    assert.ok(letters.length && Math.min(...letters) >= 12, `${letters} px, at ${width} px`);
  }
  await page.close();
});

test("a command that breaks between its parts is copied as one line", async () => {
  // Red where the parts are blocks, or nothing stands between them.
  const guest = await Visitor.arrive(browser, origin, { viewport: { width: 320, height: 640 } });
  await show(guest.context);
  await guest.open("/en/home_signed_in.html");
  const copied = await guest.page.evaluate(() => {
    getSelection().selectAllChildren(document.querySelector("#connect ~ pre code"));
    return String(getSelection());
  });
  assert.equal(copied, "portiere client add --id shop --name Shop --redirect-uri https://shop.example.com/callback");
  await guest.leave();
});

/** Returns what is said before the field that has the focus, and is not heard with it: a screen reader begins there. */
const unheard = (page) => page.evaluate(() => {
  const field = document.querySelector("main [autofocus]");
  const heard = field?.getAttribute("aria-describedby")?.split(" ").map((id) => document.getElementById(id)) ?? [];
  const said = field ? [...document.querySelectorAll("main .lead, main .alert, main .who")] : [];
  return said.filter((one) => !heard.includes(one)).map((one) => one.outerHTML);
});

for (const name of pages) {
  test(`sample ${name}`, async () => {
    const guest = await Visitor.arrive(browser, origin);
    await show(guest.context);
    await guest.open(`/en/${name}.html`);
    await guest.inspect();
    assert.deepEqual(await unheard(guest.page), []);
    await guest.page.setViewportSize(viewports[0]);
    await guest.open(`/de/${name}.html`);
    assert.equal(await over(guest.page), 0);
    // For users with poor sight: text of twice the size, and a phone zoomed to 150 % (WCAG 2.2, 1.4.4 and 1.4.10).
    for (const [width, size] of [[360, "200%"], [320, "200%"], [240, "100%"]]) {
      await guest.page.setViewportSize({ width, height: 640 });
      await guest.page.evaluate((fontSize) => { document.documentElement.style.fontSize = fontSize; }, size);
      assert.equal(await over(guest.page), 0, `${width} px, text at ${size}`);
      const narrow = await guest.page.evaluate(() => Math.min(...[...document.querySelectorAll(".who")].map((one) => one.clientWidth), 999));
      assert.ok(narrow >= 80, `who it is has ${narrow} px, at ${width} px and text at ${size}`);
    }
    await guest.leave();
  });

  test(`sample ${name} with names from right to left, of pictures and wide, in colours of the person's own`, async () => {
    const guest = await Visitor.arrive(browser, origin);
    await show(guest.context);
    await guest.page.emulateMedia({ forcedColors: "active" });
    for (const viewport of viewports) {
      await guest.page.setViewportSize(viewport);
      await guest.open(`/unruly/${name}.html`);
      assert.equal(await over(guest.page), 0, `${viewport.width} px`);
    }
    // Where the user chooses the backgrounds, a border shows what can be pressed or typed into.
    const bare = await guest.page.evaluate(() => {
      const controls = [...document.querySelectorAll("main input:not([type=hidden]), main button, main .button")];
      const shown = controls.filter((one) => one.checkVisibility() && !one.matches(".reveal button"));
      return shown.filter((one) => getComputedStyle(one).borderTopWidth === "0px").map((one) => one.outerHTML);
    });
    assert.deepEqual(bare, []);
    // There a line also says what a color says elsewhere: which field is wrong or cannot be changed, and the main button.
    const lines = { "input[aria-invalid=true]": "3px solid", "input[readonly]": "1px dashed", "button.main, .button.main": "3px solid" };
    const alike = await guest.page.evaluate((expected) => Object.entries(expected).flatMap(([kind, line]) => {
      const shown = [...document.querySelectorAll(kind)].filter((one) => one.checkVisibility() && !(one.readOnly && one.ariaInvalid));
      const drawn = (one) => [getComputedStyle(one).borderTopWidth, getComputedStyle(one).borderTopStyle].join(" ");
      return shown.filter((one) => drawn(one) !== line).map((one) => one.outerHTML);
    }), lines);
    assert.deepEqual(alike, []);
    await guest.leave();
  });
}
