// why.js: the critical path, and what kernels spent their time on (--why).

import {colourKeys, stackedBars} from "../bars.js";
import {chartWidth, gauge, h, s, table, tableBehind} from "../dom.js";
import {percent, ticks, time, timeUnit, whole} from "../format.js";
import {peName, sum} from "../result.js";
import {section} from "../sections.js";

// Reasons in the order of pictures, by what one would change: `letter` is that of the path's columns.
const reasonGroups = [
    {name: "an engine works", colour: "gemm", reasons: ["engine"]},
    {name: "an engine serves another", colour: "read", reasons: ["engine_busy"]},
    {name: "memory", colour: "hbm", reasons: ["pseudo_channel", "row", "access", "translation"]},
    {name: "scratchpad, its buffers and queues", colour: "fetch", reasons: ["channel", "buffer", "slot"]},
    {name: "links and routers", colour: "write", reasons: ["link", "wire", "node"]},
    {name: "messages of other PEs", colour: "comm", reasons: ["message", "credit"]},
    {name: "the kernel's own waits", colour: "math", reasons: ["wait", "delay"]},
    {name: "launch and host", colour: "scheduler", reasons: ["launch", "barrier", "host"]},
];
const groupOf = (reason) => reasonGroups.find((group) => group.reasons.includes(reason));
const meaningOf = ({columns}, reason) => columns?.meanings[columns.names.indexOf(reason)] ?? "";

// What the path was in at each time, as a strip.
function pathStrip(run) {
    const {names, row} = run.why.path.columns, wide = chartWidth(), high = 46, end = run.why.path.end_ps, unit = timeUnit(end), step = wide / row.length;
    const groups = names.map(groupOf);
    const svg = s("svg", {viewBox: `0 0 ${wide} ${high + 22}`, class: "path", role: "img", "aria-label": "The critical path over time"});
    for (let from = 0, to; from < row.length; from = to) {
        const group = groups[row.charCodeAt(from) - 97];
        for (to = from + 1; to < row.length && groups[row.charCodeAt(to) - 97] === group;) to++;
        svg.append(s("rect", {class: `fill-${group.colour}`, x: from * step, y: 0, width: (to - from) * step, height: high},
                     s("title", {}, `${time(from / row.length * end)} to ${time(to / row.length * end)}: ${group.name}`)));
    }
    for (const tick of ticks(0, end / unit.ps, wide / 110))
        svg.append(s("text", {class: `tick ${tick ? "mid" : ""}`, x: Math.min(tick * unit.ps / end * wide, wide - 18), y: high + 16}, `${Number(tick.toPrecision(4))}${tick ? "" : ` ${unit.name}`}`));
    return [colourKeys(reasonGroups.filter((group) => groups.some((one, i) => one === group && row.includes(String.fromCharCode(97 + i))))), svg];
}

const shareBar = (share, colour) => s("svg", {class: "gauge", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true"},
    s("rect", {class: "track", width: 100, height: 10}), s("rect", {class: `fill-${colour}`, width: (100 * share).toFixed(2), height: 10}));

const sumsTable = (title, rows, name, most) => table([
    {title, of: name}, {title: "", of: (row) => row.reason ? shareBar(row.share, groupOf(row.reason).colour) : gauge(row.share)},
    {title: "of the path", number: true, of: (row) => percent(row.share)}, {title: "time", number: true, of: (row) => time(row.ps)},
], rows.slice(0, most), {label: `The critical path by ${title}`});

const whoText = (one) => [one.pe, one.command !== undefined && `command ${one.command}`, one.tile !== undefined && `tile ${one.tile}`, one.stage, one.source].filter(Boolean).join(", ");

section({
    id: "path", title: "Critical path", shows: (run) => run.why?.path,
    about: (run) => `The chain of causes that ends with the run: each of its ${whole(run.why.path.count)} segments began when the one before ended, so they add up to ${time(run.why.path.end_ps)}. `
        + "Less time in a segment ends the run that much earlier, until another chain takes longer. What is not on the path does not make the run longer.",
    draw: (run) => {
        const {path, longest, first} = run.why;
        return [
            first ? h("p", {class: "first"}, h("b", {}, "First: "), first) : null,
            path.columns ? pathStrip(run) : null,
            h("div", {class: "side"},
              sumsTable("reason", path.by_reason, (row) => [h("b", {}, row.reason.replace("_", " ")), h("span", {class: "change"}, meaningOf(path, row.reason))], 6),
              h("div", {}, sumsTable("line", path.by_line, (row) => row.source ?? "no call: the host, or the way of a launch", 8), sumsTable("resource", path.by_resource, (row) => row.at, 8))),
            path.by_reason.length > 6 ? tableBehind("Table: all reasons", [{title: "reason", of: (row) => row.reason.replace("_", " ")}, {title: "meaning", of: (row) => meaningOf(path, row.reason)}, {title: "time", number: true, of: (row) => time(row.ps)}, {title: "of the path", number: true, of: (row) => percent(row.share)}], () => path.by_reason) : null,
            tableBehind("Table: the longest segments", [
                {title: "from", number: true, of: (one) => time(one.begin_ps)}, {title: "length", number: true, of: (one) => time(one.end_ps - one.begin_ps)},
                {title: "reason", of: (one) => one.reason.replace("_", " ")}, {title: "where", of: (one) => one.at}, {title: "for", of: whoText},
                {title: "held up", of: (one) => one.held_up ? whoText(one.held_up) : ""},
            ], () => longest ?? []),
            path.by_resource.length > 8 ? tableBehind("Table: more resources", [{title: "resource", of: (row) => row.at}, {title: "time", number: true, of: (row) => time(row.ps)}, {title: "of the path", number: true, of: (row) => percent(row.share)}], () => path.by_resource) : null,
        ].flat().filter(Boolean);
    },
});

section({
    id: "account", title: "Account", shows: (run) => run.why?.account?.pes && run.machine,
    about: "The time of each PE's kernels, split by what they did or were blocked on at each moment; the parts add up to the time. PEs are sorted by the time in which no engine worked for them: the first one is the worst.",
    draw: (run) => {
        const {pes} = run.why.account, {machine} = run, count = Math.max(...Object.values(pes).map((list) => list.length)), unit = timeUnit(run.end_ps);
        const of = (reason, pe) => pes[reason]?.[pe] ?? 0, groups = reasonGroups.filter((group) => group.reasons.some((reason) => pes[reason]?.some((ps) => ps)));
        const inGroup = (group, pe) => sum(group.reasons.map((reason) => of(reason, pe))), total = (pe) => sum(groups.map((group) => inGroup(group, pe))), idle = (pe) => total(pe) - of("engine", pe);
        const order = Array.from({length: count}, (_, pe) => pe).filter((pe) => total(pe)).sort((a, b) => idle(b) - idle(a) || a - b);
        const spread = (group) => { const all = order.map((pe) => inGroup(group, pe)); return {group, least: Math.min(...all), mean: sum(all) / all.length, most: Math.max(...all)}; };
        const whole = sum(order.map(total));
        return [
            stackedBars({order, parts: groups.map((group) => ({...group, of: (pe) => inGroup(group, pe) / unit.ps})), name: (pe) => peName(machine, pe), text: (pe) => `${time(idle(pe))} of ${time(total(pe))} without an engine at work`,
                         unit: `${unit.name} of its kernels`, label: "The time of each PE's kernels by what they were blocked on, the worst first"}),
            h("p", {class: "ends note"}, h("span", {}, `worst: ${peName(machine, order[0])}`), h("span", {}, `best: ${peName(machine, order.at(-1))}`)),
            table([{title: "blocked on", of: (row) => row.group.name}, {title: "", of: (row) => shareBar(row.mean * order.length / whole, row.group.colour)}, {title: "of all", number: true, of: (row) => percent(row.mean * order.length / whole)},
                   {title: "least", number: true, of: (row) => time(row.least)}, {title: "mean of a PE", number: true, of: (row) => time(row.mean)}, {title: "most", number: true, of: (row) => time(row.most)}], groups.map(spread), {label: "What kernels were blocked on"}),
            tableBehind("Table: the account of each PE", [
                {title: "PE", of: (pe) => peName(machine, pe)}, {title: "time", number: true, of: (pe) => time(total(pe))},
                ...groups.flatMap((group) => group.reasons).filter((reason) => pes[reason]).map((reason) => ({title: reason.replace("_", " "), number: true, of: (pe) => time(of(reason, pe))})),
            ], () => order),
        ].flat();
    },
});

// A bar of the parts of a whole: [{colour, share}].
function partsBar(parts) {
    const svg = s("svg", {class: "gauge", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true"}, s("rect", {class: "track", width: 100, height: 10}));
    let x = 0;
    for (const {colour, share} of parts) {
        svg.append(s("rect", {class: `fill-${colour}`, x: x.toFixed(2), width: (100 * share).toFixed(2), height: 10}));
        x += 100 * share;
    }
    return svg;
}

section({
    id: "engine-account", title: "Account of engines", shows: (run) => run.why?.account?.engines?.some((row) => row.time_ps),
    about: "The time of the kernels that an engine works for: busy, or idle because of what its next service waited for, and after its last service because of what the kernel's return waited for. The parts add up to the time, for each server of the engine.",
    draw: (run) => {
        const engines = run.why.account.engines.filter((row) => row.time_ps), busy = {name: "busy", colour: "gemm"}, groups = reasonGroups.map((group) => group.colour === busy.colour ? {...group, name: "another engine works", colour: "idle"} : group);
        const idleIn = (row, group) => sum(group.reasons.map((reason) => row.idle[reason] ?? 0)), all = (row) => Object.entries(row.idle).sort(([, a], [, b]) => b - a);
        const used = groups.filter((group) => engines.some((row) => idleIn(row, group)));
        const lines = () => engines.flatMap((row) => [{row, what: "busy", ps: row.busy_ps, spread: row.busy_spread}, ...all(row).map(([reason, ps]) => ({row, what: `idle: ${reason.replace("_", " ")}`, ps, spread: row.idle_spread[reason]}))]);
        return [
            colourKeys([busy, ...used]),
            table([
                {title: "engine", of: (row) => row.engine},
                {title: "", of: (row) => partsBar([{...busy, share: row.busy_ps / row.time_ps}, ...used.map((group) => ({...group, share: idleIn(row, group) / row.time_ps}))])},
                {title: "busy", number: true, of: (row) => percent(row.busy_ps / row.time_ps)},
                {title: "idle because of", of: (row) => all(row).slice(0, 3).map(([reason, ps]) => `${reason.replace("_", " ")} ${percent(ps / row.time_ps)}`).join(", ")},
                {title: "idle for longest", of: (row) => row.worst},
            ], engines, {label: "How engines spent the time of kernels"}),
            tableBehind("Table: busy and idle time of each engine", [
                {title: "engine", of: (line) => line.row.engine}, {title: "kernels", number: true, of: (line) => whole(line.row.kernels)}, {title: "", of: (line) => line.what}, {title: "of all", number: true, of: (line) => percent(line.ps / line.row.time_ps)},
                {title: "time", number: true, of: (line) => time(line.ps)}, {title: "least of a kernel", number: true, of: (line) => time(line.spread.least_ps)}, {title: "most", number: true, of: (line) => time(line.spread.most_ps)},
            ], lines),
        ];
    },
});
