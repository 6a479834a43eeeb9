// bounds.js: the least times that the problem and the algorithm need, part by part, beside the time that it took.

import {gauge, h, table} from "../dom.js";
import {percent, time} from "../format.js";
import {section} from "../sections.js";

const parts = ["array", "math", "accel", "memory", "link", "latency"];

function boundRows(bounds) {
    const rows = [{name: `${bounds.program} took`, ps: bounds.time_ps, strong: true}];
    for (const [key, name] of [["problem", "any kernel"], ["algorithm", "this kernel"]])
        for (const part of parts)
            if (bounds[key]?.[`${part}_ps`]) rows.push({name: `${name}: ${part}`, ps: bounds[key][`${part}_ps`], strong: bounds[key].by === part});
    return rows;
}

section({
    id: "bounds", title: "Bounds", shows: (run) => (run.bounds ?? []).length,
    about: "The least time that each part of the machine needs: for any kernel that solves this problem, and for this kernel. The longest of each is in bold. Where this kernel needs more of a part than any kernel has to, it does work twice; where it took longer than its bound, it leaves that part idle.",
    draw: (run) => run.bounds.slice(0, 12).map((bounds) => table([
        {title: "", of: (row) => row.strong ? h("b", {}, row.name) : row.name},
        {title: "least time", number: true, of: (row) => time(row.ps)},
        {title: "of the time it took", of: (row) => [gauge(row.ps / bounds.time_ps), percent(row.ps / bounds.time_ps)]},
    ], boundRows(bounds), {label: "Bounds"})),
});
