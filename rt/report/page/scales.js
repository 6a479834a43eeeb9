// scales.js: colours of amounts: 21 steps of one scale whose lightness is even (style.css), with its legend.

import {h} from "./dom.js";

export const heat = (share) => `h${Math.round(20 * Math.max(0, Math.min(1, share)))}`;

// A legend: the scale from 0 to `most`, which is written by `text`. A unit that is a word is written once.
export function legend(title, most, text) {
    const number = (n) => text(n).replace(/ [a-z]{4,}$/, "");
    return h("figure", {class: "legend"},
             h("figcaption", {}, title),
             h("div", {class: "ramp", "aria-hidden": "true"}, Array.from({length: 21}, (_, i) => h("span", {class: `b${i}`}))),
             h("div", {class: "ends"}, h("span", {}, number(0)), h("span", {}, number(most / 2)), h("span", {}, text(most))));
}
