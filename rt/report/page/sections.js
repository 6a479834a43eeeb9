// sections.js: the list of sections. A section appears if the run has the keys that it is about.
//
//     section({id, title, shows: (run) => ..., draw: (run) => [elements]})
//
// `about` is the caption: what the section means, in a sentence or two; a text, or a function of the run.

import {h} from "./dom.js";

export const sections = [];
export const section = (one) => sections.push(one);

export function drawSection(one, run) {
    const about = typeof one.about === "function" ? one.about(run) : one.about;
    return h("section", {id: one.id, "aria-labelledby": `${one.id}-title`}, h("h2", {id: `${one.id}-title`}, one.title), h("p", {class: "about"}, about), one.draw(run));
}
