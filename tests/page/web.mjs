// web.mjs: a session of `SIM web` in Chromium: node web.mjs CHROMIUM SHOTS ADDRESS
//
// Each check is a line of JSON on standard output: {ok, name, why}.

import {createRequire} from "node:module";
import {join} from "node:path";

import {drawn} from "./drawn.mjs";
import {wrongLooks} from "./looks.mjs";

const {chromium} = createRequire(join(process.env.NODE_PATH, "x.js"))("playwright-core");
const [executablePath, shots, address] = process.argv.slice(2);

function check(passed, name, why) {
    console.log(JSON.stringify({ok: Boolean(passed), name, why: passed ? "" : JSON.stringify(why) ?? ""}));
}

const browser = await chromium.launch({executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]});
const page = await browser.newPage({viewport: {width: 1280, height: 900}}), said = [], elsewhere = [];
page.on("console", (message) => said.push(message.text()));
page.on("pageerror", (error) => said.push(error.message));
page.on("request", (request) => request.url().startsWith(address) || elsewhere.push(request.url()));
await page.goto(address);

const status = () => page.locator("#status").textContent();
const run = async () => {
    await page.locator("#session button[type=submit]").click();
    await page.waitForFunction(() => /has ended|without a result|Not run/.test(document.getElementById("status").textContent), null, {timeout: 40000});
};

check(await page.locator("#session option").count() > 20, "the form has the benches");
check(!await page.locator("#contents").isVisible(), "without a report there is no list of its sections");
await page.locator("[name=m]").fill("x");
await page.locator("#session button[type=submit]").click();
await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("Not run"));
check((await status()).includes("m=x is not a whole number"), "a wrong value is told", await status());
await page.locator("[name=m]").fill("256");
await page.locator("[name=k]").fill("64");
await page.locator("[name=n]").fill("128");
await run();
check((await status()).startsWith("gemm m=256 k=64 n=128 has ended."), "a run ends", await status());
check(await page.locator(".plan .pe").count() === 4 && (await page.locator(".verdict").textContent()).includes("right"), "its report is on the page");
await page.locator("[name=k]").fill("128");
await run();
check(await page.locator("#compare thead th").count() === 3 && await page.locator("#compare .change").count() > 3, "two runs of a session are compared");
check((await page.locator("h1").last().textContent()).includes("k=128"), "a run is named by its parameters", await page.locator("h1").last().textContent());
await page.locator("#session select").first().selectOption("many");
check(await page.locator("[name=rounds]").count() === 1, "another bench has its own fields");
for (const [width, colorScheme] of [[1280, "light"], [1280, "dark"], [400, "light"]]) {
    await page.setViewportSize({width, height: 900});
    await page.emulateMedia({colorScheme});
    await drawn(page);
    const wrong = await wrongLooks(page);
    check(!wrong.length, `${width} pixels, ${colorScheme}: nothing is too wide, broken or faint, no labels overlap or are cut off`, wrong);
    await page.screenshot({path: join(shots, `web-${width}-${colorScheme}.png`), fullPage: true});
}
check(said.length === 1 && said[0].includes("400"), "the console tells of the refused run alone", said);
check(!elsewhere.length, "nothing is asked of anyone else", elsewhere);
await browser.close();
