// machine.js: the point that the reader has picked: its figures, the commands that repeat it, its topology as YAML.

import {axes, chosen, columns, data, firstPoint, onChoice, pick, points} from "./data.js";
import {h, table} from "../dom.js";
import {section} from "../sections.js";

// A topology as the page has it: mappings are objects, and scalars are texts as YAML writes them. A level of a key is a text,
// or such a tree.
const isMapping = (tree) => typeof tree === "object" && !Array.isArray(tree);
const overlaid = (base, top) => base === undefined || !isMapping(base) || !isMapping(top) ? top
    : {...base, ...Object.fromEntries(Object.entries(top).map(([key, value]) => [key, overlaid(base[key], value)]))};
const nested = (path, value) => path.split(".").reverse().reduce((tree, key) => ({[key]: tree}), value);

function yaml(tree, depth = 0) {
    const indent = "  ".repeat(depth), empty = isMapping(tree) ? "{}" : "[]";
    const behind = (value) => typeof value === "string" ? `${value ? ` ${value}` : ""}\n` : !Object.keys(value).length ? ` ${isMapping(value) ? "{}" : "[]"}\n` : null;
    if (!Object.keys(tree).length) return `${indent}${empty}\n`;
    if (isMapping(tree)) return Object.entries(tree).map(([key, value]) => `${indent}${key}:${behind(value) ?? `\n${yaml(value, depth + 1)}`}`).join("");
    return tree.map((value) => `${indent}-${behind(value) ?? (isMapping(value) ? ` ${yaml(value, depth + 1).trimStart()}` : `\n${yaml(value, depth + 1)}`)}`).join("");
}

export function topologyOf(point) {
    const keys = axes.filter((column) => !column.name.startsWith("params.") && column.values[point] !== null);
    return yaml(keys.reduce((tree, column) => overlaid(tree, nested(column.name, data.trees[column.name]?.[String(column.values[point])] ?? String(column.values[point]))), data.topology));
}

const quoted = (word) => /^[A-Za-z0-9_\-+=.,:/@%]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

function commandsOf(point) {
    const name = `point-${points.hash[point].slice(0, 12)}`, program = `build/${name}`;
    const run = (one) => `${program} ${one.verb}${one.fixed}${one.axes.filter((axis) => columns[axis.column].values[point] !== null).map((axis) => ` ${quoted(`${axis.name}=${columns[axis.column].values[point]}`)}`).join("")}`;
    return {
        make: [`kbgen point ${quoted(data.store)} ${points.hash[point].slice(0, 12)} -o ${name}.yaml`, `kbgen ${name}.yaml -o ${program}${data.build}`],
        run: data.workloads.map(run),
        report: data.workloads.map((one) => `${run(one)} --report ${quoted(`${name}${data.workloads.length > 1 ? `-${one.name}` : ""}.html`)}`),
    };
}

const commandBox = (title, lines) => [h("h3", {}, title), h("pre", {class: "commands", tabindex: 0}, lines.join("\n"))];

section({
    id: "point", title: "A point", shows: () => points.hash.length > 0,
    about: () => "The point that was clicked last: what it has, how to repeat it, and its machine as a topology that needs no other file.",
    draw: () => {
        const box = h("div", {class: "picked"});
        const show = () => {
            const point = chosen.point, commands = commandsOf(point), state = data.states[points.state[point]];
            const rows = (roles) => columns.filter((column) => roles.includes(column.role) && column.values[point] !== null);
            const list = (title, found) => found.length ? h("div", {}, h("h3", {}, title), table([{title: "name", of: (column) => h("span", {title: column.name}, column.label)},
                {title: "value", number: true, of: (column) => column.exact(column.values[point])}], found, {label: title})) : null;
            box.replaceChildren(
                h("p", {class: "which"}, h("b", {class: "hash"}, points.hash[point]), ` trial ${points.trial[point].toLocaleString("en-US")}, `, h("span", {class: points.state[point] ? "bad" : "good"}, state),
                  points.why[point] ? `: ${points.why[point]}` : "", points.front[point] ? ", on the front" : ""),
                h("div", {class: "side"}, [list("Keys", rows(["axis"])), list("Figures", rows(["metric", "derived"]))].filter(Boolean)),
                ...commandBox("Its machine", commands.make), ...commandBox("Its runs", commands.run), ...commandBox("A report of its own, for each run", commands.report),
                h("details", {class: "behind", open: true}, h("summary", {}, "Its topology"), h("pre", {class: "topology", tabindex: 0}, topologyOf(point))));
        };
        onChoice((what) => what === "point" && show());
        if (chosen.point < 0) pick(firstPoint());
        show();
        return [box];
    },
});
