#!/usr/bin/python3
"""web: what `SIM web` answers, and what it refuses: other hosts and origins, wrong tokens, paths, long bodies, two runs at
once; and its page in a browser, where there is one. limit: 120
"""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

from harness import ROOT, SAN, SLOW, SMALL, done, in_browser, ok, read, run, scratch, simulator, wait_until

LONG = "many\nrounds=4000000\n--data=off"                # does not end by itself while it is tested; see tests/host/many.c


class Session:
    """A server, and requests to it."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "web"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        self.address = self.process.stdout.readline().strip()
        parts = urlsplit(self.address)
        self.port, self.path, self.origin = parts.port, parts.path, f"http://127.0.0.1:{parts.port}"

    def ask(self, path="", body=None, method=None, whole=None, timeout=20, **headers):
        """Status, headers and body of the answer to a request; `whole` is its whole path."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout * SLOW)
        method = method or ("GET" if body is None else "POST")
        if method == "POST" and "Origin" not in headers:
            headers["Origin"] = self.origin
        headers = {name: value for name, value in headers.items() if value is not None}
        try:
            connection.putrequest(method, whole if whole is not None else self.path + path, skip_host="Host" in headers)
            body = body.encode() if isinstance(body, str) else body
            if body is not None and "Transfer-Encoding" not in headers and "Content-Length" not in headers:
                headers["Content-Length"] = str(len(body))
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, {}, str(error)
        finally:
            connection.close()

    def state(self):
        return json.loads(self.ask("state")[2])

    def ended(self, number, timeout=30):
        """The run of this number, when it has ended."""
        wait_until(lambda: self.state()["current"] != number, timeout)
        return json.loads(self.ask(f"runs/{number}")[2])


def folders():
    return {name for name in os.listdir("/tmp") if name.startswith("kbgen-web-")}


def test_refusals(session):
    token = session.path.strip("/")
    ok(re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", session.address), "the address has a token of 128 bits", session.address)
    table = read("/proc/net/tcp") + read("/proc/net/tcp6")
    listens = re.findall(rf"\d: ([0-9A-F]+):{session.port:04X} [0-9A-F]+:0000 0A ", table)
    ok(listens == ["0100007F"], "the server listens on 127.0.0.1 alone", *listens)
    status, headers, text = session.ask()
    ok(status == 200 and "connect-src 'self'" in text and headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
       and "Access-Control-Allow-Origin" not in headers, "the page may ask its server alone, and no other origin may read it", status, headers)
    other = ("0" if token[0] != "0" else "1") + token[1:]
    for path in ("/", f"/{other}/", f"/{other}/state", f"/{token}", f"/{token[:-1]}/", f"//{token}/", f"/{token}0/", "", "*", f"/{token.upper()}x/"):
        status, _, text = session.ask(whole=path)
        ok(status in (400, 404) and len(text) < 120, f"without the right token there is nothing: {path.replace(token, 'TOKEN').replace(other, 'OTHER')!r}", status, text)
    for path in ("x", "../state", "runs/../state", "runs/", "runs/0", "runs/1", "runs/-1", "runs/1.json", "runs/../../../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd",
                 "runs/%2e%2e%2freport.html", "runs/99999999999999999999", "state/", "run", "stop", "runs/1%00"):
        status, _, text = session.ask(path)
        ok(status == 404 and "root:" not in text, f"no path leads to a file: {path}", status, text)
    for name, headers in (("another Host", {"Host": "evil.example"}), ("another port in Host", {"Host": "127.0.0.1:1"}), ("a Host that begins like ours", {"Host": f"127.0.0.1:{session.port}.evil.example"}),
                          ("another Origin", {"Origin": "http://evil.example"}), ("the Origin null", {"Origin": "null"}), ("our Origin by https", {"Origin": session.origin.replace("http:", "https:")})):
        for path, body in (("state", None), ("run", "gemm"), ("stop", "")):
            status, _, text = session.ask(path, body, **headers)
            ok(status == 403, f"{name} is refused: {path}", status, text)
    status, _, text = session.ask("run", "gemm", Origin=None)
    ok(status == 403, "a POST without an Origin is refused", status, text)
    ok(session.ask("state", Host=f"localhost:{session.port}")[0] == 200, "localhost is a name of the server")
    for method in ("PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"):
        ok(session.ask("state", method=method, Origin=session.origin)[0] in (405, 501), f"the method {method} is refused")
    for name, body, headers in (("a body of 64 KiB and a byte", "x" * (65536 + 1), {}), ("a huge length", "x", {"Content-Length": "99999999999999999999"})):
        status, _, text = session.ask("run", body, **headers)
        ok(status in (413, 400, 0) and status != 202, f"{name} is refused", status, text)
    pieces = b"".join(b"4000\r\n" + b"y" * 0x4000 + b"\r\n" for _ in range(8)) + b"0\r\n\r\n"
    status, _, text = session.ask("run", pieces, **{"Transfer-Encoding": "chunked"})
    ok(status in (0, 413), "a body in pieces that is too long ends the connection", status, text)
    for body, message in (("nonsense", "there is no such bench"), ("", "there is no such bench"), ("gemm\nm=x", "m=x is not a whole number"), ("gemm\nz=1", "z=1 is not a parameter of gemm"),
                          ("gemm\n--oplog=/tmp/x", "is not a parameter"), ("gemm\nm", "m is not a parameter"), ("gemm\nm=8\0", "a zero in a text"), ("--help", "there is no such bench"),
                          ("all_reduce\npes=../x", "has a slash"), ("gemm\n" + "m=8\n" * 60, "too many lines")):
        status, _, text = session.ask("run", body)
        ok(status == 400 and message in json.loads(text)["error"], f"a run {body[:24]!r} is refused: {message}", status, text)
    ok(session.state() == {"current": 0, "line": ""}, "after all this nothing runs")


def test_slow_clients(session):
    slow = []
    for _ in range(30):
        slow.append(socket.create_connection(("127.0.0.1", session.port)))
        slow[-1].sendall(f"POST {session.path}run HTTP/1.1\r\nHost: 127.0.0.1:{session.port}\r\nOrigin: {session.origin}\r\nContent-Length: 20\r\n\r\nge".encode())
    began = time.monotonic()
    status = session.ask("state")[0]
    ok(status == 200 and time.monotonic() - began < 3 * SLOW, "clients that send slowly hold up no other", status)
    for one in slow:
        one.close()


def test_runs(session, program):
    status, _, text = session.ask("run", "gemm\nm=256\nk=64\nn=128")
    ok(status == 202 and json.loads(text) == {"number": 1}, "a run begins", status, text)
    ended = session.ended(1)
    run(program, "run", "gemm", "m=256", "k=64", "n=128", "--json", scratch("plain.json"))
    plain, got = json.loads(read(scratch("plain.json"))), ended["result"]
    ok(got["status"] == 0 and got["activity"]["frames"]["count"] >= 100 and all(got[key] == plain[key] for key in ("params", "end_ps", "verify", "util", "bytes")),
       "its result is that of the command line, with what pictures need", got["status"])
    ok(session.ask("run", LONG)[0] == 202, "another run begins")
    status, _, text = session.ask("run", "gemm")
    ok(status == 409 and "another run is under way" in text, "of two runs at once the second is refused", status, text)
    ok(session.state()["current"] == 2, "the state tells the number of the run")
    wait_until(lambda: "simulated" in session.state()["line"] or session.state()["current"] == 0, 20)
    line = session.state()["line"]
    ok(session.state()["current"] == 2 and re.search(r"\d", line) and "\033" not in line, "a run of some seconds shows its progress", line)
    session.ask("stop", "")
    ended = session.ended(2)
    ok(ended["result"] and ended["result"].get("interrupted") and ended["result"]["status"] == 143, "a run that is stopped reports what it has", str(ended)[:300])
    status = session.ask("run", "gemm\nm=64\n--data=off")[0]
    ended = session.ended(3)
    ok(status == 202 and ended["result"]["verify"][0]["status"] == "skipped", "a run can leave the data out", str(ended)[:300])


def test_end(session, program, before):
    session.ask("run", LONG)
    [folder] = folders() - before or [""]
    child = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and read(f"/proc/{pid}/stat").rsplit(")", 1)[-1].split()[1:2] == [str(session.process.pid)]]
    session.process.send_signal(signal.SIGTERM)
    status = session.process.wait(20 * SLOW)
    ok(status == 0 and folder and folder not in folders(), "SIGTERM ends the session, and its folder is gone", status, folder)
    ok(len(child) == 1 and not os.path.exists(f"/proc/{child[0]}"), "the run that was under way has ended as well", *child)
    needed = run("readelf", "-d", program).stdout
    libraries = set(re.findall(r"NEEDED.*\[(.*?)\.so", needed))
    ok(libraries and (SAN or libraries <= {"libc", "libm", "libgmp", "libz"}),
       "a simulator itself needs no library for this, and none that a Debian system may lack", *libraries)
    for words, message in ((("x",), "web takes no arguments"), (("--port", "65536"), "a whole number from 0 to 65535"), (("--port", "x"), "a whole number from 0 to 65535")):
        ended = run(program, "web", *words, timeout=20)
        ok(ended.returncode == 2 and message in ended.stderr, f"web {' '.join(words)}: {message}", ended.said)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = run(program, "web", "--port", str(taken.getsockname()[1]), timeout=20)
        ok(ended.returncode == 2 and "cannot serve on port" in ended.stderr, "a port that is in use is told", ended.said)


def main():
    before = folders()
    program = simulator(SMALL, "small", [os.path.join(ROOT, "tests", "host", "many.c")])
    session = Session(program)
    try:
        test_refusals(session)
        test_slow_clients(session)
        test_runs(session, program)
        if not SAN:
            in_browser("web.mjs", 6, session.address)
        test_end(session, program, before)
    finally:
        session.process.terminate()
    done()


if __name__ == "__main__":
    sys.exit(main())
