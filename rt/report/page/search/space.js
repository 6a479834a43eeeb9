// space.js: what was searched, and the first lines of the page.

import {bestOf, data, objectives, pointCount, points} from "./data.js";
import {h, table} from "../dom.js";
import {whole} from "../format.js";
import {section} from "../sections.js";

const {counts} = data;
const plural = (n, word) => `${whole(n)} ${word}${n === 1 ? "" : "s"}`;

function tellSearch() {
    const parts = [`${plural(counts.points, "point")} ran`];
    if (counts.failed) parts.push(`${whole(counts.failed)} failed`);
    if (counts.infeasible) parts.push(`${whole(counts.infeasible)} ${counts.infeasible === 1 ? "does" : "do"} not meet the conditions`);
    if (counts.refused) parts.push(`${plural(counts.refused, "other")} did not meet the conditions before a run`);
    const list = parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}` : parts[0];
    return `${list}.${objectives.length > 1 && counts.front ? ` ${plural(counts.front, "point")} ${counts.front === 1 ? "is" : "are"} on the front.` : ""}`;
}

const figureTile = (name, figure, note, state) => h("div", {class: `tile ${state ?? ""}`, "data-figure": name}, h("dt", {}, name), h("dd", {class: "figure"}, figure), h("dd", {class: "note"}, note));

export function searchHead() {
    const tiles = [figureTile("Points", whole(counts.points), counts.failed ? `${whole(counts.failed)} failed` : "none failed")];
    if (objectives.length > 1) tiles.push(figureTile("Front", whole(counts.front), objectives.map((one) => `${one.goal} ${one.column.label}`).join(", ")));
    for (const one of objectives) {
        const best = bestOf(one);
        if (best >= 0) tiles.push(figureTile(`${one.goal === "max" ? "Most" : "Least"} ${one.column.label}`, one.column.text(one.column.values[best]), `point ${points.hash[best].slice(0, 12)}`));
    }
    return [h("p", {class: "maker"}, "kbgen search"), h("h1", {}, data.search.path ?? data.store, h("span", {class: "on"}, ` in ${data.store}`)), h("p", {class: "verdict"}, tellSearch()), h("dl", {class: "tiles"}, tiles)];
}

section({
    id: "space", title: "What was searched", shows: () => true,
    about: () => "The space file of the search. The same file and seed give the same points.",
    draw: () => [
        table([{title: "what", of: (row) => row.name}, {title: "value", of: (row) => row.text}],
              [["method", data.search.method], ["seed", data.search.seed], ["begun", data.search.begun], ["kbgen", data.search.kbgen], ["search", `${data.search.number} of ${data.search.searches} in the store`],
               ["points on this page", `${whole(pointCount)} of ${whole(counts.points)}`]].filter(([, text]) => text !== null && text !== undefined).map(([name, text]) => ({name, text: String(text)})), {label: "What was searched"}),
        h("details", {class: "behind"}, h("summary", {}, "The space file"), h("pre", {class: "topology", tabindex: 0}, data.search.space)),
    ],
});
