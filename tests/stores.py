"""stores: makes and reads stores of kbgen search, by their documented schema, with Python's own SQLite."""
import hashlib
import json
import os
import sqlite3

APPLICATION = 0x6b62676e
LINK = "cube.noc.link_bw_gbs"
GEMM_ROWS = "cube.pe_template.components.pe_gemm.attrs.rows"
TILE = "params.tile_m"
FIXED = ("hash", "structure", "status", "why", "exit", "host_us")
WHOLE = ("end_ps", "events")
SCHEMA = """
CREATE TABLE search(id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, space TEXT NOT NULL, topology TEXT NOT NULL,
 about TEXT NOT NULL, begun TEXT NOT NULL, kbgen TEXT NOT NULL) STRICT;
CREATE TABLE trial(search INTEGER NOT NULL, number INTEGER NOT NULL, hash TEXT, status TEXT, why TEXT, levels BLOB,
 PRIMARY KEY(search, number)) STRICT, WITHOUT ROWID;
CREATE TABLE alias(asked TEXT PRIMARY KEY, hash TEXT NOT NULL, used TEXT) STRICT, WITHOUT ROWID;
CREATE TABLE derived(name TEXT PRIMARY KEY, expression TEXT NOT NULL) STRICT;
CREATE TABLE verified(hash TEXT PRIMARY KEY, status TEXT NOT NULL, why TEXT, max_err REAL) STRICT, WITHOUT ROWID;
"""


def hash_of(number):
    return hashlib.md5(str(number).encode()).hexdigest()


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def kept(path, sets=()):
    """A topology of one file as a store has it: each text ends in a record separator."""
    with open(path, encoding="utf-8") as file:
        return "".join(f"{text}\x1e" for text in (f"f{os.path.basename(path)}", file.read(), *(f"s{one}" for one in sets)))


def make_store(path, points, objectives=(("end_ps", "min"), ("area_mm2", "min")), derive=("area_mm2", "cost"), axes=(LINK, GEMM_ROWS, TILE),
               topology="", application=APPLICATION, version=2, about=None, workloads=None, fidelity=None):
    """A store with one search of these points, {number, values, status, why, infeasible, hash}; None: without a search."""
    for end in ("", "-wal", "-shm"):
        if os.path.exists(path + end):
            os.unlink(path + end)
    store = sqlite3.connect(path)
    store.executescript(f"PRAGMA journal_mode = WAL; PRAGMA application_id = {application}; PRAGMA user_version = {version};" + SCHEMA)
    names = [*axes, *WHOLE, *derive]
    store.execute("CREATE TABLE point(hash TEXT PRIMARY KEY, structure TEXT, status TEXT NOT NULL, why TEXT, exit INTEGER, host_us INTEGER, "
                  + ", ".join(f"{quoted(name)} {'INTEGER' if name in WHOLE else 'ANY'}" for name in names) + ") STRICT, WITHOUT ROWID")
    if points is not None:
        about = about or json.dumps({
            "axes": [{"name": name, "levels": 4, "ordered": True} for name in axes], "metrics": list(WHOLE),
            "derive": [{"name": name, "expression": "1 + 1"} for name in derive], "where": ["area_mm2 <= 800"],
            "objectives": [{"name": name, "goal": goal} for name, goal in objectives],
            "workloads": workloads or [{"name": "gemm", "bench": "gemm", "params": {"m": 512, "k": 128, "n": 256}, "weight": 1}],
            "method": "random", "seed": 1, "path": "space.yaml", "kernels": [], "impls": []} | ({"fidelity": fidelity} if fidelity else {}))
        store.execute("INSERT INTO search VALUES(1, ?, 'topology: small.yaml', ?, ?, '2026-11-22T20:00:00Z', '0.1')", ("0" * 32, topology, about))
    rows, trials = [], []
    for point in points or ():
        key, status = point.get("hash") or hash_of(point["number"]), point.get("status", "ok")
        rows.append((key, "0" * 32, status, point.get("why"), 0, 100, *(point["values"].get(name) for name in names)))
        trials.append((1, point["number"], key, "infeasible" if point.get("infeasible") else None, "area_mm2 <= 800" if point.get("infeasible") else None, b""))
    store.executemany(f"INSERT OR IGNORE INTO point VALUES({', '.join('?' * (len(FIXED) + len(names)))})", rows)
    store.executemany("INSERT INTO trial VALUES(?, ?, ?, ?, ?, ?)", trials)
    store.commit()
    store.close()
    return path


def downgrade(path):
    """Makes a store one of version 1."""
    with sqlite3.connect(path) as store:
        store.executescript("ALTER TABLE alias DROP COLUMN used; ALTER TABLE verified DROP COLUMN max_err; PRAGMA user_version = 1")
    return path


def rows(path, sql):
    with sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=30) as file:
        return file.execute(sql).fetchall()


def content(path):
    """Everything that a store has, except figures of the host."""
    columns = [f'"{name}"' for (name,) in rows(path, "SELECT name FROM pragma_table_info('point')") if name != "host_us"]
    return (rows(path, f"SELECT {', '.join(columns)} FROM point ORDER BY hash"),
            rows(path, "SELECT number, hash, status, why, levels FROM trial ORDER BY search, number"))
