#!/usr/bin/python3
"""schema: the JSON Schema that kbgen prints, held against topologies by a public validator. plain build only

Every good topology is valid. The first line of every wrong one in tests/errors says whether a schema can see its fault;
this checks it. Topologies are loaded as kbgen reads them: scalars are numbers, booleans and null where kbgen takes them
for such, numbers are exact, and everything else is text.
"""
import fractions
import functools
import glob
import json
import os
import re

import yaml
from jsonschema import Draft7Validator

from harness import KBGEN, ROOT, done, ok, read, run

NUMBER = re.compile(r"-?(0|[1-9](_?[0-9])*)(\.[0-9](_?[0-9])*)?([eE]-?(0|[1-9](_?[0-9])*))?"
                    r"|0x[0-9a-fA-F](_?[0-9a-fA-F])*")
BEYOND = 400                                            # larger exponents take Python too long


def number(text):
    text = text.replace("_", "")
    if text.startswith("0x"):
        return int(text, 16)
    exponent = text.lower().partition("e")[2]
    if len(exponent) > 4 or abs(int(exponent or 0)) > BEYOND:
        text = text.lower().partition("e")[0] + f"e{'-' if exponent.startswith('-') else ''}{BEYOND}"
    value = fractions.Fraction(text)
    return int(value) if value.denominator == 1 else value


def scalar(node):
    if node.style is None:
        if node.value in ("~", "null", "Null", "NULL", ""):
            return None
        if node.value in ("true", "false"):
            return node.value == "true"
        if NUMBER.fullmatch(node.value):
            return number(node.value)
    return node.value


def mapping(node):
    """The keys of a mapping, and those that it merges unless it has them; of merged ones the first counts."""
    own, merged = {}, {}
    for key, inner in node.value:
        if key.value != "<<" or key.style is not None:
            own[value(key)] = value(inner)
            continue
        for source in inner.value if isinstance(inner, yaml.SequenceNode) else [inner]:
            merged = value(source) | merged
    return merged | own


@functools.cache                                        # a node that aliases name is one node
def value(node):
    if isinstance(node, yaml.ScalarNode):
        return scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [value(item) for item in node.value]
    return mapping(node)


def load(path):
    with open(path, "rb") as file:
        node = yaml.compose(file, Loader=yaml.SafeLoader)
    return value(node) if node else {}


def complaint(validator, path):
    """The first complaint of the validator; empty if it has none or cannot read the file."""
    try:
        topology = load(path)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, TypeError, AttributeError):
        return ""
    return next((f"{'.'.join(map(str, error.path))}: {error.message}" for error in validator.iter_errors(topology)), "")


def check_defaults(validator, schema, path=""):
    """Every default is a valid value of its key."""
    if "default" in schema:
        wrong = [error.message for error in validator.evolve(schema=schema).iter_errors(schema["default"])]
        ok(not wrong, f"the default of {path} is valid", *wrong)
    for name, inner in schema.get("properties", {}).items():
        check_defaults(validator, inner, f"{path}.{name}".lstrip("."))


def undescribed(schema, path=""):
    for name, inner in schema.get("properties", {}).items():
        if path not in ("k_per_cycle", "lanes") and not inner.get("description"):
            yield name
        yield from undescribed(inner, name)


def main():
    printed = run(KBGEN, "--dump", "schema")
    schema = json.loads(printed.stdout)
    Draft7Validator.check_schema(schema)
    ok(printed.returncode == 0 and not printed.stderr, "kbgen prints a schema of draft-07", printed.said)
    ok(not list(undescribed(schema)), "every key of the schema is described", *undescribed(schema))
    validator = Draft7Validator(schema)
    check_defaults(validator, schema)
    good = ("tests/good/**/*.yaml", "tests/conformance/*/topo.yaml", "topologies/*.yaml")
    for path in sorted(path for pattern in good for path in glob.glob(os.path.join(ROOT, pattern), recursive=True)):
        wrong = complaint(validator, path)
        ok(not wrong, f"{os.path.relpath(path, ROOT)} is valid by the schema", wrong)
    for path in sorted(glob.glob(os.path.join(ROOT, "tests/errors/*.yaml"))):
        claim = re.search(r"; schema: (sees|cannot see)$", read(path).split("\n", 1)[0])
        wrong = complaint(validator, path)
        ok(claim and (claim[1] == "sees") == bool(wrong),
           f"the schema {claim and claim[1]} the fault of {os.path.basename(path)}", wrong)
    done()


main()
