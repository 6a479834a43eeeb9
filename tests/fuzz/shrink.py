"""shrink: of a case that fails, a smaller one that fails too: without what makes no difference."""
import copy
import os

from trial import Broken, Machine, write_yaml

TRIES = 300


def without(tree, path):
    """A copy of a tree without what lies at a path."""
    tree = copy.deepcopy(tree)
    inner = tree
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return tree


def paths(tree, at=()):
    """Every element of every list and every key of every mapping, the big ones before what lies in them."""
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))[::-1] if isinstance(tree, list) else []
    for key in keys:
        yield (*at, key)
    for key in keys:
        yield from paths(tree[key], (*at, key))


def reduced(tree, fails):
    """Drops parts for as long as what is left fails."""
    tries, again = 0, True
    while again:
        again = False
        for path in list(paths(tree)):
            try:
                smaller = without(tree, path)
            except (KeyError, IndexError, TypeError):
                continue                                        # it went with another part
            tries += 1
            if tries > TRIES:
                return tree
            if fails(smaller):
                tree, again = smaller, True
    return tree


def case(folder, tree, stream):
    """Leaves the smallest failing pair found in a folder."""
    path = os.path.join(folder, "stream.yaml")
    machine = Machine(folder, tree)

    def stream_fails(value):
        write_yaml(path, value)
        return differs(machine, path)

    def machine_fails(value):
        write_yaml(path, stream)
        try:
            return differs(Machine(folder, value), path)
        except (Broken, KeyError, ValueError, TypeError, IndexError, ZeroDivisionError):
            return False
    if stream_fails(stream):
        stream = reduced(stream, stream_fails)
        tree = reduced(tree, machine_fails)
    write_yaml(path, stream)
    return Machine(folder, tree)


def differs(machine, path):
    """Whether a valid stream fails: an error of the file, or of the oracle alone, is no finding."""
    try:
        wrong = machine.complaints(path)
    except (KeyError, ValueError, TypeError, IndexError):
        return False
    return bool(wrong) and not wrong[0].startswith(("exit status 2", "the oracle fails"))
