// compare.js: two or more runs side by side, with their differences from the first.

import {gauge, h, table} from "../dom.js";
import {bytes, count, percent, time} from "../format.js";
import {peCount, runLetter, runName, runs, utilNames, utilShare} from "../result.js";
import {section} from "../sections.js";
import {verdict} from "./summary.js";

const difference = (from, to) => {
    if (from === undefined || to === undefined || from === to) return from === to ? "same" : "";
    if (!from) return "new";
    const change = 100 * (to / from - 1);
    return `${change > 0 ? "+" : "−"}${Math.abs(change) < 9.95 ? Math.abs(change).toFixed(1) : Math.round(Math.abs(change))} %`;
};

// Rows of figures: {name, of: (run) => number, text: (number) => text, less: less is better}.
function comparedFigures() {
    const rows = [{name: "simulated time", of: (run) => run.end_ps, text: time, less: true}];
    const add = (name, of, text, less) => {
        if (runs.some((run) => of(run))) rows.push({name, of, text, less});
    };
    add("PEs", (run) => run.machine && peCount(run.machine), String);
    add("matrix products", (run) => run.util?.gemm_flop, (n) => count(n, "FLOP"));
    add("their rate", (run) => run.util?.span_ps && run.util.gemm_flop / run.util.span_ps * 1e12, (n) => count(n, "FLOP/s"), false);
    add("least time of the problem", (run) => run.bounds?.[0]?.problem?.bound_ps, time);
    add("share of the best", (run) => run.bounds?.[0]?.problem && run.bounds[0].problem.reached_permille / 1000, percent, false);
    for (const space of ["hbm", "tcm", "sram"]) {
        add(`${space} read`, (run) => run.bytes?.[space]?.read, bytes);
        add(`${space} written`, (run) => run.bytes?.[space]?.write, bytes);
    }
    for (const name of Object.keys(runs[0].bytes?.links ?? {})) add(`${name} links`, (run) => run.bytes?.links?.[name], bytes);
    for (const name of new Set(runs.flatMap((run) => Object.keys(run.params ?? {}))))
        if (new Set(runs.map((run) => String(run.params?.[name]))).size > 1)
            rows.push({name: `parameter ${name}`, of: (run) => run.params?.[name], text: String, plain: true});
    return rows;
}

function figureCell(row, run) {
    const figure = row.of(run), first = row.of(runs[0]);
    if (figure === undefined || figure === null) return "-";
    if (run === runs[0] || row.plain || typeof figure !== "number") return row.text(figure);
    const better = row.less === undefined || figure === first ? "" : (figure < first) === row.less ? "better" : "worse";
    return [row.text(figure), h("span", {class: `change ${better}`}, difference(first, figure))];
}

const bars = (name) => h("div", {class: "pair"}, runs.filter((run) => run.util).map((run) => {
    const share = utilShare(run, name);
    return h("div", {class: "bar", title: `${runName(run)}: ${percent(share)}`}, h("span", {class: "letter"}, runLetter(run)),
             gauge(share), h("span", {class: "number"}, percent(share)));
}));

section({
    id: "compare", title: "Comparison", shows: () => runs.length > 1,
    about: "Figures of all runs; below each is its difference from the first run. The bars are the share of the time for which each kind of resource was busy.",
    draw: () => {
        const names = [...new Set(runs.flatMap(utilNames))];
        return [
            h("ol", {class: "runs"}, runs.map((run) => h("li", {}, h("b", {}, runName(run)), " ", verdict(run)))),
            h("div", {class: "side"},
              table([{title: "", of: (row) => row.name},
                     ...runs.map((run) => ({title: runName(run), number: true, of: (row) => figureCell(row, run)}))],
                    comparedFigures(), {label: "Comparison"}),
              h("div", {}, h("h3", {}, "Busy"), h("div", {class: "pairs"}, names.map((name) => [h("div", {class: "name"}, name), bars(name)])))),
        ];
    },
});
