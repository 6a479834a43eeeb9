// web.js: the form of a page that `SIM web` serves: benches and their parameters, the run that is under way, and its
// report when it has ended.

import {h, select} from "./dom.js";
import {addRun, runs, web} from "./result.js";

const TICK_MS = 300;

// The field of a parameter; empty means its default.
function paramField(param) {
    const initial = String(param.initial), words = param.words?.split(" ") ?? (typeof param.initial === "boolean" ? ["false", "true"] : null);
    const input = words ? h("select", {name: param.name}, words.map((word) => h("option", {value: word, selected: word === initial}, word)))
        : h("input", {name: param.name, placeholder: initial, autocomplete: "off", spellcheck: "false"});
    const given = () => input.value === "" || input.value === initial ? null : `${param.name}=${input.value}`;
    return {given, element: h("label", {class: "field"}, h("span", {}, param.name), input, h("small", {}, words ? param.help : `${param.help}; ${param.domain}`))};
}

export function startSession(show) {
    const fields = h("div", {class: "fields"}), status = h("p", {class: "note", role: "status", id: "status"}), said = h("pre", {class: "said", hidden: true});
    const runButton = h("button", {type: "submit", class: "primary"}, "Run"), stopButton = h("button", {type: "button", disabled: true, onclick: stop}, "Stop");
    const data = h("input", {type: "checkbox", checked: true});
    const what = h("p", {class: "note"});
    let bench = null, inputs = [];

    function choose(name) {
        bench = web.benches.find((one) => one.name === name);
        inputs = bench.params.map(paramField);
        what.textContent = bench.what;
        fields.replaceChildren(...inputs.map((input) => input.element));
    }
    const say = (text, more) => {
        status.textContent = text;
        said.textContent = more ?? "";
        said.hidden = !more;
    };
    async function ask(path, body) {
        const answer = await fetch(path, body === undefined ? {} : {method: "POST", body});
        const told = await answer.json();
        if (!answer.ok) throw new Error(told.error ?? `status ${answer.status}`);
        return told;
    }
    const busy = (running) => {
        runButton.disabled = running;
        stopButton.disabled = !running;
    };
    async function follow(number, name) {
        const began = performance.now();
        for (;;) {
            const state = await ask("state");
            if (state.current !== number) break;
            say(`${name} runs: ${((performance.now() - began) / 1000).toFixed(1)} s. ${state.line}`);
            await new Promise((go) => setTimeout(go, TICK_MS));
        }
        const ended = await ask(`runs/${number}`);
        if (!ended.result) return say(`${name} ended without a result.`, ended.said);
        const run = addRun(ended.result, name);
        say(`${name} has ended${ended.result.status ? `, with status ${ended.result.status}` : ""}. This session has ${runs.length} ${runs.length === 1 ? "run" : "runs"}${runs.length > 1 ? ", which Comparison compares" : ""}.`,
            ended.result.status ? ended.said : "");
        show(run);
    }
    async function start(event) {
        event.preventDefault();
        const given = [bench.name, ...inputs.map((input) => input.given()).filter(Boolean)];
        busy(true);
        say("Starts.");
        try {
            const {number} = await ask("run", [...given, data.checked ? "" : "--data=off"].join("\n"));
            await follow(number, given.join(" "));
        } catch (error) {
            say(`Not run: ${error.message}`);
        }
        busy(false);
    }
    function stop() {
        ask("stop", "").catch((error) => say(error.message));
    }

    document.title = `${web.machine}: kbgen`;
    document.getElementById("session").replaceChildren(
        h("p", {class: "maker"}, "kbgen"), h("h1", {}, web.machine),
        h("form", {onsubmit: start},
          h("div", {class: "controls"}, select("Bench", web.benches.map((one) => ({value: one.name, title: one.name})), web.benches[0].name, choose), what),
          fields, h("div", {class: "act"}, runButton, stopButton, h("label", {class: "key"}, data, "compute and verify the data")), status, said));
    document.getElementById("sections").replaceChildren();
    choose((web.benches.find((one) => one.name === "gemm") ?? web.benches[0]).name);
    document.querySelector("#session select").value = bench.name;
    say("No run yet. Empty fields have the values that they show.");
}
