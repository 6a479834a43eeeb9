"""causes: the critical path and the accounts that a result tells (--why), against those of the oracle."""
import json

import why

CHANNELS = ("channel", "pseudo_channel", "row")         # works in a part of what they are at, which has a name there


def owner_of(told):
    return (told["pe"], told["command"], told.get("tile"), told.get("stage")) if "pe" in told else None


def told(path):
    """The rows (begin, end, edge, reason, work, at, for whom, whom it held up) of a result's path."""
    for one in path["segments"]:
        at = one["at"] + (" " + one["channel"] if one["work"] in CHANNELS and "channel" in one else "")
        yield (one["begin_ps"], one["end_ps"], one.get("edge", "direct"), one["reason"], one["work"], at, owner_of(one),
               owner_of(one["held_up"]) if "held_up" in one else None)


def known(path):
    """The same of the oracle's."""
    for one in path:
        held_up = one.held_up if one.edge != "direct" else None
        yield (one.begin, one.end, one.edge, one.reason, one.work, one.at, one.owner and tuple(one.owner),
               held_up and tuple(held_up))


def folded(rows):
    """Rows that differ in their tiles alone are one: results tell them so."""
    def alike(row):
        return *row[2:6], *(owner and (*owner[:2], owner[3]) for owner in row[6:])
    kept = []
    for row in rows:
        if kept and alike(kept[-1]) == alike(row) and kept[-1][1] == row[0]:
            kept[-1] = kept[-1][0], row[1], *kept[-1][2:]
        else:
            kept.append(row)
    return kept


def path_difference(want, got):
    """Where two paths differ, looked at from the end; empty if they are equal."""
    want, got = (folded(rows)[::-1] for rows in (known(want), told(got)))
    for left, right in zip(want, got):
        if left != right:
            return f"critical path:\nwant {left}\ngot  {right}"
    return "" if len(want) == len(got) else f"critical path: want {len(want)} segments, got {len(got)}"


def difference(result, causes):
    """Where a result's answer to --why differs from what the oracle knows; empty if it does not."""
    path, accounts, launches = causes
    value = json.loads(result)["why"]
    if said := path_difference(path, value["path"]):
        return said
    told_launches = sorted(value["launches"], key=lambda one: one["request"])
    if len(launches) != len(told_launches):
        return f"paths of launches: want {len(launches)}, got {len(told_launches)}"
    for (begin, want), one in zip(launches, told_launches):
        said = "" if begin == one["begin_ps"] == one["path"]["begin_ps"] else f"it begins at {one['begin_ps']}, not {begin}"
        if said := said or path_difference(want, one["path"]):
            return f"launch of request {one['request']}: {said}"
    told_accounts = {(one["pe"], one["begin_ps"]): one for one in value["account"]["kernels"]}
    if accounts.keys() != told_accounts.keys():
        return f"accounts: want {sorted(accounts)}, got {sorted(told_accounts)}"
    for place, (want, engines) in accounts.items():
        told_one = told_accounts[place]
        got = told_one["reasons"]
        if got != {name: ps for name, ps in want.items() if ps}:
            return f"account of {place}:\nwant {want}\ngot  {got}"
        got = {one["engine"]: (one["busy_ps"], one["idle"]) for one in told_one["engines"]}
        if got != engines:
            return f"engines of {place}:\nwant {engines}\ngot  {got}"
    return ""
