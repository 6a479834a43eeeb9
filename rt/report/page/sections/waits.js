// waits.js: how long tiles of each PE waited in the queue of each stage, PEs sorted.

import {stackedBars} from "../bars.js";
import {h, tableBehind} from "../dom.js";
import {digits, time} from "../format.js";
import {enginesOf, peCount, peName, sum} from "../result.js";
import {section} from "../sections.js";

function drawWaits(run) {
    const {machine, activity} = run, span = run.util?.span_ps || run.end_ps, pes = peCount(machine);
    const of = enginesOf(run), waits = of.map((engine) => activity.engines[engine.name].wait_ps);
    const total = (pe) => sum(waits.map((list) => list[pe])), order = Array.from({length: pes}, (_, pe) => pe).sort((a, b) => total(b) - total(a) || a - b);
    return [
        stackedBars({order, parts: of.map((engine, i) => ({name: `for ${engine.name}`, colour: engine.colour, of: (pe) => waits[i][pe] / span})),
                     name: (pe) => peName(machine, pe), text: (pe) => `${digits(total(pe) / span)} tiles waiting`,
                     unit: "tiles waiting, mean over the run", label: "Waiting tiles of each PE, the most first"}),
        h("p", {class: "ends note"}, h("span", {}, `most: ${peName(machine, order[0])}`), h("span", {}, `least: ${peName(machine, order[pes - 1])}`)),
        tableBehind("Table: waits of each PE", [
            {title: "PE", of: (pe) => peName(machine, pe)}, {title: "all waits", number: true, of: (pe) => time(total(pe))},
            ...of.map((engine, i) => ({title: `for ${engine.name}`, number: true, of: (pe) => time(waits[i][pe])})),
        ], () => order),
    ];
}

section({
    id: "waits", title: "Waits", shows: (run) => run.machine && run.activity && enginesOf(run).some((engine) => run.activity.engines[engine.name].wait_ps.some((ps) => ps > 0)),
    about: "How many tiles and commands of each PE waited for each part, as a mean over the run: waits of several tiles at a time add up. A long wait for a busy part is work in store; a long wait for a part that is seldom busy is a stall behind it.",
    draw: drawWaits,
});
