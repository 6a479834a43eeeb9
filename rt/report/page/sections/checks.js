// checks.js: whether the results are right, and whether calls race.

import {h, table} from "../dom.js";
import {digits, percent, whole} from "../format.js";
import {section} from "../sections.js";

const known = (n, text) => n === undefined || n === null ? "" : text(n);

section({
    id: "verification", title: "Verification", shows: (run) => (run.verify ?? []).length,
    about: "Each tensor against a reference that the host computed by itself in double precision. The share of its bound says how much of the rounding that the arithmetic allows was used; the power says how small a mistake would have been seen.",
    draw: (run) => [table([
        {title: "tensor", of: (one) => one.tensor}, {title: "result", of: (one) => h("b", {class: one.status === "ok" ? "good" : one.status === "skipped" ? "" : "bad"}, one.status)},
        {title: "largest error", number: true, of: (one) => known(one.max_err, (n) => n.toPrecision(3))}, {title: "of its bound", number: true, of: (one) => known(one.max_share, digits)},
        {title: "relative error", number: true, of: (one) => known(one.relative, (n) => n.toPrecision(2))}, {title: "power", number: true, of: (one) => known(one.power, percent)},
        {title: "wrong elements", number: true, of: (one) => known(one.wrong, whole)},
        {title: "first wrong", of: (one) => one.first_wrong ? JSON.stringify(one.first_wrong) : ""},
    ], run.verify, {label: "Verification"})],
});

section({
    id: "defects", title: "Injected defects", shows: (run) => run.inject,
    about: "Mistakes that were put into the computation of the data, one at a time: how many of those that change a result the verification detected.",
    draw: (run) => [table([{title: "fate", of: (row) => row[0]}, {title: "defects", number: true, of: (row) => whole(row[1])}],
        ["detected", "missed", "harmless", "not_run"].filter((fate) => run.inject[fate] !== undefined).map((fate) => [fate.replace("_", " "), run.inject[fate]]), {label: "Injected defects"})],
});

const callText = (call) => !call || typeof call !== "object" ? String(call ?? "") : [call.call ?? call.op ?? call.name, call.pe, call.file && `${call.file}:${call.line}`].filter(Boolean).join(", ");

section({
    id: "races", title: "Races", shows: (run) => run.race_check,
    about: (run) => `Accesses to the same bytes without an order between them, at least one of which writes. ${whole(run.race_check.compared)} of ${whole(run.race_check.operations)} operations were compared.`,
    draw: (run) => !(run.races ?? []).length ? [h("p", {class: "good"}, "No calls race.")]
        : [table([{title: "pair", number: true, of: (row) => row.number}, {title: "what", of: (row) => row.text}],
                 run.races.slice(0, 200).map((race, i) => ({number: i + 1, text: Object.entries(race).map(([key, of]) => `${key} ${callText(of)}`).join("; ")})), {label: "Races"})],
});
