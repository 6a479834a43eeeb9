// main.js: puts the page together: head, list of sections, sections of the chosen run.

import {forgetPainters, h, select} from "./dom.js";
import {runName, runs, web} from "./result.js";
import {drawSection, sections} from "./sections.js";
import {head} from "./sections/summary.js";
import {startSession} from "./web.js";

function show(run) {
    forgetPainters();
    const shown = sections.filter((one) => one.shows(run));
    document.title = `${runName(run)} on ${run.system}: kbgen report`;
    document.getElementById("head").replaceChildren(...head(run));
    const chooser = runs.length > 1 ? select("Run", runs.map((one) => ({value: String(one.number), title: runName(one)})), String(run.number), (number) => show(runs[Number(number)])) : null;
    document.getElementById("contents").replaceChildren(...[chooser, h("ul", {}, shown.map((one) => h("li", {}, h("a", {href: `#${one.id}`}, one.title))))].filter(Boolean));
    document.getElementById("sections").replaceChildren(...shown.map((one) => drawSection(one, run)));
}

if (web) startSession(show);
else show(runs[0]);
