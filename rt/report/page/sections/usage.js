// usage.js: how busy each kind of resource was, over the run and over time.

import {timeChart} from "../chart.js";
import {gauge, h, table} from "../dom.js";
import {bytes, percent, time} from "../format.js";
import {enginesOf, maxima, means, utilNames, utilShare} from "../result.js";
import {section} from "../sections.js";
import {showFrame} from "./floorplan.js";

function usageRows(run) {
    return utilNames(run).map((name) => {
        const of = run.util[name];
        return {name, busy: utilShare(run, name), wait: of.wait_ps, servers: of.servers,
                busiest: of.busiest_servers !== of.servers ? of.busiest_ps / (run.util.span_ps * of.busiest_servers) : null};
    });
}

function usageTable(run) {
    return table([
        {title: "resource", of: (row) => row.name},
        {title: "", of: (row) => gauge(row.busy)},
        {title: "busy", number: true, of: (row) => h("span", {"data-busy": row.name}, percent(row.busy))},
        {title: "busiest", number: true, of: (row) => row.busiest === null ? "" : percent(row.busiest)},
        {title: "servers", number: true, of: (row) => row.servers.toLocaleString("en-US")},
        {title: "waits, summed", number: true, of: (row) => time(row.wait)},
    ], usageRows(run), {label: "Busy"});
}

function moved(run) {
    const rows = [];
    for (const space of ["hbm", "tcm", "sram"]) {
        const of = run.bytes?.[space];
        if (of && of.read + of.write) rows.push({name: space, read: bytes(of.read), write: bytes(of.write)});
    }
    for (const [name, n] of Object.entries(run.bytes?.links ?? {})) if (n) rows.push({name: `${name} links`, read: bytes(n), write: ""});
    return table([{title: "moved", of: (row) => row.name}, {title: "read, or carried", number: true, of: (row) => row.read},
                  {title: "written", number: true, of: (row) => row.write}], rows, {label: "Bytes moved"});
}

section({
    id: "busy", title: "Busy", shows: (run) => run.util?.span_ps,
    about: (run) => `The share of the time from the first kernel's start to the last one's end (${time(run.util.span_ps)}) for which each kind of resource was at work, as a mean over its servers. `
        + "What is busy for most of the time bounds the run; if nothing is, steps wait for one another." + (run.activity ? " The chart shows the same shares over time, a band for each: a full band is all of its servers at work." : ""),
    draw: (run) => {
        const frames = run.activity?.frames, parts = [];
        if (frames) {
            const series = [...enginesOf(run), {name: "hbm", colour: "hbm"}].filter((one) => frames.series[one.name])
                .map((one) => ({name: one.name, colour: one.colour, values: means(frames.series[one.name], frames.count)}));
            if (frames.series.links) series.push({name: "busiest link", colour: "scheduler", values: maxima(frames.series.links, frames.count)});
            const chart = timeChart(frames, series, showFrame);
            parts.push(chart.element);
            requestAnimationFrame(chart.start);
        }
        return [...parts, h("div", {class: "side"}, usageTable(run), moved(run))];
    },
});
