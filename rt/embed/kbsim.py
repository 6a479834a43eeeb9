"""kbsim: simulated accelerators in Python: the libraries of `kbgen TOPOLOGY.yaml --emit lib` (docs/embedding.md).

    import kbsim
    machine = kbsim.load("build/small.lib")
    result = machine.run("gemm", m=4096)                # the JSON result of `SIM run gemm m=4096`, as a dict
    with machine.create(seed=7) as sim:                 # an instance, whose time passes in sim.run and sim.wait alone
        x = sim.tensor("x", (64, 1024), "f32")
        x.set(numpy.ones((64, 1024), "float32"))
        print(sim.wait(sim.launch("square", [x, y])))

The calls are those of kb/sim.h, which says more about each. It needs CPython 3.9 or later on Linux; NumPy only where Tensor.get
makes an array. Data are any objects with the buffer protocol: NumPy arrays, bytes, bytearray. They are used in place, so they
must be C-contiguous, and writable if a call fills them.

Times are integers of picoseconds. Addresses are physical. PEs are given by numbers over the whole machine, or by names
("sip0.cube0.pe1"), one or several; None: all. A request is a number, which poll and wait take.

A call that fails raises Error, with the status and the text of the library. TypeError, ValueError and OverflowError are for
arguments that do not get that far. Faults of the simulated machine are results. An exception of a callback is raised by the
call that it interrupts, after that call has done its work. Kernels are C code in this process: one that writes through wild
pointers can crash it.
"""
import contextlib
import ctypes
import glob
import json
import operator
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_ssize_t, c_uint32, c_uint64, c_void_p

ABI = 1                                                 # KB_ABI_VERSION of the header that this module is for
FOREVER = 2 ** 64 - 1                                   # a time that never comes

STATUSES = ("KB_OK", "KB_RUN_FAILED", "KB_WRONG", "KB_HOST_FAILED", "KB_BUSY", "KB_NO_MEMORY", "KB_TOO_SMALL", "KB_ENDED")
OUTCOMES = ("running", "ok", "failed", "timeout", "deadlock", "skipped")
KINDS = ("launch", "program", "stream", "write", "read", "map", "unmap")
STARTS = ("barrier", "cube", "free")
STOPS = {"until": 1, "completed": 2, "fault": 4, "idle": 8, "deadlock": 16}
SPACES = ("hbm", "tcm", "sram")
SPLITS = ("whole", "rows", "cols", "blocks", "copies")
# Dtypes in the order of kb/dtypes.def: the name in NumPy, and in the buffer protocol. Elements of bf16 and
# of the floats of 8 bits are their bits.
DTYPES = {"f32": ("float32", "f"), "f16": ("float16", "e"), "bf16": ("uint16", "H"), "i32": ("int32", "i"),
          "i16": ("int16", "h"), "i8": ("int8", "b"), "u8": ("uint8", "B"), "f8e4m3": ("uint8", "B"), "f8e5m2": ("uint8", "B")}
RANK = 4                                                # the most axes of a tensor


class Error(Exception):
    """A call of the library that has failed: `status` is the word for its status, "KB_WRONG"; `text` says what is wrong."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status, self.text = status, text


class RunFailed(Error):
    """A bench that has failed, or whose verified data are wrong; `result` is its result as a dict."""

    def __init__(self, status, text, result):
        super().__init__(status, text)
        self.result = result


# ---- the structs of kb/sim.h, version ABI

class _Result(ctypes.Structure):
    _fields_ = [("struct_size", c_uint64), ("request", c_uint64), ("kind", c_uint32), ("outcome", c_uint32),
                ("submitted_ps", c_uint64), ("start_ps", c_uint64), ("done_ps", c_uint64), ("pe_count", c_uint64),
                ("failure", c_char_p), ("failure_node", c_char_p), ("failure_ps", c_uint64), ("failure_pe", c_uint64)]


class _PeResult(ctypes.Structure):
    _fields_ = [("struct_size", c_uint64), ("pe", c_uint32), ("outcome", c_uint32), ("start_ps", c_uint64),
                ("end_ps", c_uint64), ("dma_ps", c_uint64), ("compute_ps", c_uint64), ("failure", c_char_p),
                ("failure_node", c_char_p), ("failure_ps", c_uint64)]


class _Stop(ctypes.Structure):
    _fields_ = [("struct_size", c_uint64), ("now_ps", c_uint64), ("request", c_uint64), ("reason", c_uint32),
                ("reserved", c_uint32)]


class _Event(ctypes.Structure):
    _fields_ = [("struct_size", c_uint64), ("t_ps", c_uint64), ("event", c_char_p), ("line", c_char_p)]


_LOG = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
_COMPLETED = ctypes.CFUNCTYPE(None, c_void_p, POINTER(_Result))
_TRACE = ctypes.CFUNCTYPE(None, c_void_p, POINTER(_Event))
_STATS = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, c_uint64)


class _Config(ctypes.Structure):
    _fields_ = [("struct_size", c_uint64), ("machine", c_void_p), ("seed", c_uint64), ("set", POINTER(c_char_p)),
                ("set_count", c_uint64), ("memory_bytes", c_uint64), ("data", c_uint32), ("threads", c_uint32),
                ("exact_events", c_uint32), ("reserved", c_uint32), ("user", c_void_p), ("log", _LOG),
                ("completed", _COMPLETED)]


class _Launch(ctypes.Structure):
    _fields_ = [("struct_size", c_uint64), ("kernel", c_char_p), ("pes", POINTER(c_uint32)), ("pe_count", c_uint64),
                ("arg", c_void_p), ("arg_bytes", c_uint64), ("timeout_ps", c_uint64), ("start", c_uint32),
                ("fail_fast", c_uint32)]


class _Tensor(ctypes.Structure):
    _fields_ = [("struct_size", c_uint64), ("name", c_char_p), ("dtype", c_uint32), ("rank", c_uint32),
                ("size", c_uint64 * RANK), ("space", c_uint32), ("split", c_uint32), ("rows", c_uint32), ("cols", c_uint32),
                ("pes", POINTER(c_uint32)), ("pe_count", c_uint64)]


STRUCTS = {"kb_sim_config": _Config, "kb_sim_stop": _Stop, "kb_sim_result": _Result, "kb_sim_pe_result": _PeResult,
           "kb_sim_launch": _Launch, "kb_sim_tensor": _Tensor, "kb_sim_event": _Event}

_PES, _U64S, _U64_OUT = POINTER(c_uint32), POINTER(c_uint64), POINTER(c_uint64)
_CALLS = {                                              # arguments after the instance
    "destroy": (), "reset": (), "save": (c_void_p, c_uint64, _U64_OUT), "restore": (c_void_p, c_uint64), "run": (c_uint64, c_uint32, POINTER(_Stop)), "now_ps": (_U64_OUT,), "next_ps": (_U64_OUT,),
    "poll": (c_uint64, POINTER(_Result)), "poll_pe": (c_uint64, c_uint64, POINTER(_PeResult)),
    "launch": (POINTER(_Launch), _U64_OUT), "replay": (c_char_p, c_uint64, _U64_OUT), "program": (POINTER(_Launch), _U64_OUT),
    "command": (c_uint64, c_uint32, c_char_p, c_uint64), "program_end": (c_uint64,),
    "map": (_PES, _U64S, c_uint64, c_uint64, c_uint64, _U64_OUT), "unmap": (_PES, c_uint64, c_uint64, c_uint64, _U64_OUT),
    "write": (_U64S, c_uint64, c_uint64, c_void_p, _U64_OUT), "read": (_U64S, c_uint64, c_uint64, c_void_p, _U64_OUT),
    "poke": (c_uint64, c_void_p, c_uint64), "peek": (c_uint64, c_void_p, c_uint64),
    "tensor": (POINTER(_Tensor), POINTER(c_void_p)), "tensor_set": (c_void_p, c_void_p, c_uint64),
    "tensor_get": (c_void_p, c_void_p, c_uint64), "tensor_shard": (c_void_p, c_uint64, _U64_OUT, _U64_OUT),
    "run_bench": (c_char_p, POINTER(c_char_p), c_uint64), "result_json": (c_char_p, c_uint64, _U64_OUT),
    "describe": (c_char_p, c_uint64, _U64_OUT), "stat": (c_char_p, _U64_OUT), "stats": (_STATS, c_void_p),
    "trace": (_TRACE, c_void_p),
}


def _sized(kind, **fields):
    """A struct with its size and some fields set."""
    return kind(struct_size=ctypes.sizeof(kind), **fields)


def _dict(struct):
    """A struct of the library as a dict: words for enumerators, None for times and numbers that there are not."""
    words = {"outcome": OUTCOMES, "kind": KINDS, "reason": {number: word for word, number in STOPS.items()}}
    found = {}
    for name, kind in struct._fields_:
        value = getattr(struct, name)
        if name in words:
            value = words[name][value]
        elif kind is c_char_p:
            value = value and value.decode()
        elif value == FOREVER:
            value = None
        if name not in ("struct_size", "reserved"):
            found[name] = value
    return found


# ---- arguments

def _number(value, what, bits=64):
    """A whole number as the library takes it: ctypes would cut it off."""
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is a whole number, not {type(value).__name__}") from None
    if not 0 <= value < 2 ** bits:
        raise OverflowError(f"{what} is {value}: from 0 to 2^{bits} - 1")
    return value


def _is_number(value):
    """Whether it is a whole number, also one of NumPy, which has bytes as well."""
    return hasattr(value, "__index__") and not hasattr(value, "__len__")


def _text(value, what):
    if not isinstance(value, str):
        raise TypeError(f"{what} is a str, not {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"{what} has a NUL character")
    return value.encode()


def _word(value, words, what):
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{what} is one of {', '.join(words)}, not {value!r}")
    return words.index(value)


def _yaml(value, what):
    """A str as it is, other values as JSON, which YAML contains."""
    return _text(value if isinstance(value, str) else json.dumps(value), what)


def _texts(pairs, what):
    """KEY=VALUE of the items of a dict, as an array of texts."""
    if not hasattr(pairs, "items"):
        raise TypeError(f"{what} is a dict, not {type(pairs).__name__}")
    lines = []
    for key, value in pairs.items():
        value = value.item() if hasattr(value, "item") else value       # a scalar of NumPy
        lines.append(_text(key, what) + b"=" + _yaml(value, f"{what}: {key}"))
    return (c_char_p * len(lines))(*lines)


def _several(values):
    return [values] if isinstance(values, str) or not hasattr(values, "__iter__") else list(values)


def _addresses(values):
    values = [_number(value, "an address") for value in _several(values)]
    return (c_uint64 * len(values))(*values)


class _Buffer(ctypes.Structure):
    """Py_buffer of Python."""
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t), ("itemsize", c_ssize_t), ("readonly", c_int),
                ("ndim", c_int), ("format", c_char_p), ("shape", c_void_p), ("strides", c_void_p), ("suboffsets", c_void_p),
                ("internal", c_void_p)]


_PYTHON = ctypes.PyDLL(None)
_PYTHON.PyObject_GetBuffer.argtypes = (ctypes.py_object, POINTER(_Buffer), c_int)
_PYTHON.PyBuffer_Release.argtypes = (POINTER(_Buffer),)
_PYTHON.PyBuffer_Release.restype = None


def _view(data, what, fills=False):
    """A memoryview of data whose bytes can be used in place."""
    try:
        view = memoryview(data)
    except (TypeError, ValueError, BufferError) as why:
        raise TypeError(f"{what}: an array or bytes are needed, not {type(data).__name__} ({why})") from None
    if "O" in view.format:
        raise TypeError(f"{what}: the array holds Python objects")
    if not view.c_contiguous:
        raise ValueError(f"{what}: the array is not C-contiguous; numpy.ascontiguousarray makes one that is")
    if fills and view.readonly:
        raise ValueError(f"{what}: the array is read-only, and the call fills it")
    return view


@contextlib.contextmanager
def _address(view):
    """Where the bytes of a memoryview are: they stay there during the call."""
    held = _Buffer()
    _PYTHON.PyObject_GetBuffer(view, byref(held), 0)    # PyBUF_SIMPLE; the view was checked
    try:
        yield held.buf
    finally:
        _PYTHON.PyBuffer_Release(byref(held))


# ---- machines

_loaded = {}                                            # libraries by device and inode


def _open(path):
    """Loads a library. One that was made anew at the same path is another file, which dlopen would not see by its name."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    info = os.fstat(file)
    key = info.st_dev, info.st_ino
    if key in _loaded:
        os.close(file)
    else:
        try:
            _loaded[key] = ctypes.CDLL(f"/proc/self/fd/{file}")     # the file stays open, so no other one gets its name
        except OSError as why:
            os.close(file)
            raise OSError(str(why).replace(f"/proc/self/fd/{file}", path)) from None
    return _loaded[key]


def load(path):
    """Loads a library: NAME.lib, the folder that `kbgen --emit lib` makes, or a libNAME.so. Returns its Machine.

    Raises FileNotFoundError if there is none, OSError if it cannot be loaded, Error if it is of another version."""
    path = os.fspath(path)
    files = glob.glob(os.path.join(glob.escape(path), "lib*.so")) if os.path.isdir(path) else [path]
    if len(files) != 1:
        raise FileNotFoundError(f"{path}: there is {'more than one' if files else 'no'} lib*.so in this folder")
    return Machine(_open(files[0]), files[0])


class Machine:
    """A machine, of which instances are made: `name`, `hash` (as `SIM --version` prints it) and `path` of its library."""

    def __init__(self, library, path):
        try:
            version = library.kb_abi_version
            version.restype, version.argtypes = c_uint32, ()
        except AttributeError:
            raise Error("KB_WRONG", f"{path} is not a library of kbgen --emit lib") from None
        if version() != ABI:
            raise Error("KB_WRONG", f"{path} is of version {version()} of the interface, this module of version {ABI}")
        library.kb_last_error.restype, library.kb_last_error.argtypes = c_char_p, (c_void_p,)
        library.kb_machine_hash.restype = library.kb_library_name.restype = c_char_p
        library.kb_sim_create.argtypes = POINTER(_Config), POINTER(c_void_p)
        for name, words in _CALLS.items():
            getattr(library, "kb_sim_" + name).argtypes = (c_void_p, *words)
        self._library, self._description, self.path = library, None, path
        self.name, self.hash = library.kb_library_name().decode(), library.kb_machine_hash().decode()

    def __repr__(self):
        return f"<kbsim.Machine {self.name}: {len(self.pes)} PEs>"

    def create(self, *, seed=0, set=None, data=True, memory_bytes=0, threads=1, exact_events=False, log=None,
               completed=None):                         # pylint: disable=redefined-builtin
        """Makes an Instance at time 0, which is also a context manager that destroys it.

        seed          of random values
        set           a dict of numbers to replace: {"cube.noc.link_bw_gbs": 512}
        data          whether data are computed, and benches verify them; False: time alone
        memory_bytes  the most that the instance allocates; 0: 64 GiB of addresses
        threads       of a data pass, the calling one among them
        exact_events  whether every event is simulated
        log           gets each line of messages, a str, at the end of the call that it is of
        completed     gets the dict of poll of each request that is complete, at its time

        Raises Error, such as KB_WRONG for an unknown key and KB_NO_MEMORY."""
        return Instance(self, seed=seed, set=set, data=data, memory_bytes=memory_bytes, threads=threads,
                        exact_events=exact_events, log=log, completed=completed)

    def run(self, bench, /, **params):
        """Runs a bench on a new instance: Instance.run_bench."""
        with self.create() as sim:
            return sim.run_bench(bench, **params)

    def describe(self):
        """The machine as a dict: "pes", "memories" with addresses and bytes, "benches" with parameters, "kernels"."""
        if self._description is None:
            with self.create(data=False) as sim:
                self._description = sim.describe()
        return self._description

    @property
    def pes(self):
        """The names of the PEs, in the order of their numbers."""
        return self.describe()["pes"]

    @property
    def memories(self):
        """The memories by their names: a dict with "address" and "bytes" for each."""
        return {memory["name"]: memory for memory in self.describe()["memories"]}


# ---- instances

class _Hooks:
    """What the library calls, apart from the instance, so that these do not keep one another alive."""

    def __init__(self, log, completed):
        for what, function in (("log", log), ("completed", completed)):
            if function is not None and not callable(function):
                raise TypeError(f"{what} is a function, not {type(function).__name__}")
        self.log, self.lines, self.raised = log, [], None
        # Messages come on the stacks of kernels as well, which are small: they are told when the call has returned.
        self.c_log = _LOG(lambda _, line: self.lines.append(line)) if log else _LOG()
        self.c_completed = _COMPLETED(self.guard(lambda _, result: completed(_dict(result[0])))) if completed else _COMPLETED()
        self.c_trace = _TRACE()

    def guard(self, function):
        """A function that keeps its exception for the end of the call: one cannot pass through C."""
        def call(*args):
            if self.raised is None:
                try:
                    function(*args)
                except BaseException as why:            # pylint: disable=broad-except; it is raised again
                    self.raised = why
        return call

    def tell(self):
        """Tells the program of messages, and raises what a callback has raised."""
        lines, self.lines[:] = self.lines[:], []
        for line in lines:
            self.log(line.decode(errors="replace"))
        raised, self.raised = self.raised, None
        if raised is not None:
            raise raised


class Instance:
    """A simulated machine with its memories and its time, made by Machine.create. One thread at a time uses it; a call
    from another thread or from its own callback raises Error with KB_BUSY. Different instances run in parallel."""

    def __init__(self, machine, *, seed, set, data, memory_bytes, threads, exact_events, log, completed):
        self.machine, self._handle = machine, None
        self._tensors, self._tensors_made = frozenset(), 0    # numbers of those that there are
        self._hooks = _Hooks(log, completed)
        pairs = _texts(set or {}, "set")
        config = _sized(_Config, seed=_number(seed, "seed"), set=pairs, set_count=len(pairs),
                        memory_bytes=_number(memory_bytes, "memory_bytes"), data=0 if data else 1,
                        threads=_number(threads, "threads", 32), exact_events=bool(exact_events), log=self._hooks.c_log,
                        completed=self._hooks.c_completed)
        handle, library = c_void_p(), machine._library
        status = library.kb_sim_create(byref(config), byref(handle))
        if status:
            raise Error(STATUSES[status], library.kb_last_error(None).decode(errors="replace"))
        self._handle = handle.value
        self._hooks.tell()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._handle is not None:
            self.destroy()

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self.machine._library.kb_sim_destroy(self._handle)

    def _status(self, name, *args):
        """Makes a call. Returns its status and the text of its failure."""
        handle, library = self._handle, self.machine._library
        if handle is None:
            raise Error("KB_WRONG", f"kb_sim_{name}: the instance is destroyed")
        status = getattr(library, "kb_sim_" + name)(handle, *args)
        text = (library.kb_last_error(handle) or library.kb_last_error(None)).decode(errors="replace") if status else ""
        return STATUSES[status], text

    def _end(self, status, text):
        """Ends a call: tells the program of messages, and raises what was wrong."""
        if status == "KB_BUSY":                         # what it has called is told by the call that is under way
            raise Error(status, text)
        self._hooks.tell()
        if status == "KB_RUN_FAILED":
            raise RunFailed(status, text, self.result())
        if status != "KB_OK":
            raise Error(status, text)

    def _call(self, name, *args):
        self._end(*self._status(name, *args))

    def _u64(self, name, *args):
        """A call whose last argument is a number that it sets."""
        value = c_uint64()
        self._call(name, *args, byref(value))
        return value.value

    def _json(self, name):
        size = self._u64(name, None, 0)
        text = ctypes.create_string_buffer(size)
        self._u64(name, text, size)
        return json.loads(text.value.decode())

    def destroy(self):
        """Frees the instance. Other calls raise Error from then on."""
        status, text = self._status("destroy")
        if status == "KB_OK":
            self._handle = None
        self._end(status, text)

    def reset(self):
        """Makes the instance what it was when it was created. Its tensors and requests are no more."""
        status, text = self._status("reset")
        if status != "KB_BUSY":
            self._tensors = frozenset()
        self._end(status, text)

    def save(self):
        """The state of the instance, a State: its memories, requests and kernels in flight. A copy of this process by os.fork
        is the cheaper way to several continuations."""
        buffer = ctypes.create_string_buffer(self._u64("save", None, 0))
        self._u64("save", buffer, len(buffer))
        return State(self, buffer)

    def restore(self, state):
        """Puts a State of this instance back, any number of times: what follows is what followed then. Requests and tensors
        are those of the state; the visitor of `trace` stays what it is."""
        if not isinstance(state, State):
            raise TypeError(f"a State is needed, not {type(state).__name__}")
        self._call("restore", state.buffer, len(state.buffer))
        self._tensors = state.tensors

    # ---- time

    @property
    def now_ps(self):
        """The simulated time."""
        return self._u64("now_ps")

    @property
    def next_ps(self):
        """The earliest time at which anything happens if nothing more is asked for; None: nothing is due."""
        time = self._u64("next_ps")
        return None if time == FOREVER else time

    def run(self, until_ps=None, stop=()):
        """Lets time pass up to until_ps, that instant included (None: until nothing is due), or up to the end of the first
        instant in which something of `stop` happens: "completed", "fault", "idle", "deadlock", one or several.

        Returns {"now_ps", "request", "reason"}; request: the first that is complete or has failed, else 0. Raises Error if
        until_ps is in the past. An interrupt of the keyboard is noticed when the call returns."""
        mask = 0
        for word in _several(stop):
            mask |= 1 << _word(word, tuple(STOPS), "stop")
        why = _sized(_Stop)
        self._call("run", FOREVER if until_ps is None else _number(until_ps, "until_ps"), mask, byref(why))
        return _dict(why)

    def wait(self, request):
        """Lets time pass until a request is complete, well or not. Returns its dict, as poll does. Raises Error if it waits
        for something that only the program can do, such as the next command."""
        while True:
            found = self.poll(request)
            if found["outcome"] != "running":
                return found
            if self.run(stop=("completed", "deadlock"))["reason"] == "idle" and self.poll(request)["outcome"] == "running":
                raise Error("KB_WRONG", f"request {request} is not complete, and nothing is due")

    # ---- requests

    def poll(self, request):
        """The state of a request: {"request", "kind", "outcome", "submitted_ps", "start_ps", "done_ps", "pe_count",
        "failure", "failure_node", "failure_ps", "failure_pe"}. Outcomes are those of OUTCOMES; None: there is none yet."""
        result = _sized(_Result)
        self._call("poll", _number(request, "request"), byref(result))
        return _dict(result)

    def poll_pes(self, request):
        """The state of the PEs of a launch, in rank order: a list of {"pe", "outcome", "start_ps", "end_ps", "dma_ps",
        "compute_ps", "failure", "failure_node", "failure_ps"}."""
        found = []
        for i in range(self.poll(request)["pe_count"]):
            result = _sized(_PeResult)
            self._call("poll_pe", _number(request, "request"), i, byref(result))
            found.append(_dict(result))
        return found

    def _pes(self, pes):
        names = self.machine.pes if pes is None or any(isinstance(pe, str) for pe in _several(pes)) else ()
        numbers = range(len(names)) if pes is None else _several(pes)
        for pe in numbers:
            if isinstance(pe, str) and pe not in names:
                raise ValueError(f"there is no PE {pe!r} in {self.machine.name}")
        numbers = [names.index(pe) if isinstance(pe, str) else _number(pe, "a PE", 32) for pe in numbers]
        return (c_uint32 * len(numbers))(*numbers)

    def _argument(self, args):
        """The argument struct of a kernel, or None."""
        members = []
        for value in args:
            if isinstance(value, Tensor):
                value = c_void_p(value._pointer(self))
            elif not isinstance(value, (ctypes.Structure, ctypes.Array, ctypes._SimpleCData)):
                raise TypeError(f"an argument of a kernel is a Tensor or a value of ctypes such as c_uint32(5), "
                                f"not {type(value).__name__}")
            members.append((f"member{len(members)}", type(value), value))
        if not members:
            return None
        kind = type("Argument", (ctypes.Structure,), {"_fields_": [member[:2] for member in members]})
        return kind(*(value for *_, value in members))

    def _launch(self, call, kernel, args, pes, timeout_ps, start, fail_fast):
        pes, argument = self._pes(pes), self._argument(args)
        ask = _sized(_Launch, kernel=kernel, pes=pes, pe_count=len(pes),
                     arg=argument and ctypes.cast(byref(argument), c_void_p), arg_bytes=ctypes.sizeof(argument) if argument else 0,
                     timeout_ps=_number(timeout_ps, "timeout_ps"), start=_word(start, STARTS, "start"), fail_fast=bool(fail_fast))
        return self._u64(call, byref(ask))

    def launch(self, kernel, args=(), pes=None, *, timeout_ps=0, start="barrier", fail_fast=False):
        """Launches a kernel by its name. `args` are the members of its argument struct, in order: Tensors, and values of
        ctypes (c_uint32(5), a Structure). timeout_ps: from now on; 0: none. start: "barrier", "cube" or "free".

        Returns the request. Raises Error for an unknown kernel, arguments of another size, or PEs that are busy or failed."""
        return self._launch("launch", _text(kernel, "kernel"), args, pes, timeout_ps, start, fail_fast)

    def replay(self, stream):
        """Replays a command stream (docs/cli.md): its text, or what that text means in dicts and lists. Returns the request."""
        text = _yaml(stream, "stream")
        return self._u64("replay", text, len(text))

    def program(self, pes=None, name=None, *, timeout_ps=0, start="barrier", fail_fast=False):
        """Launches a program without commands yet, which `command` adds. Returns the request."""
        return self._launch("program", None if name is None else _text(name, "name"), (), pes, timeout_ps, start, fail_fast)

    def command(self, request, pe, step):
        """Adds a step of a stream's program for a PE: {"do": "delay", "ns": 5}, or its text. Raises Error if it is wrong."""
        text = _yaml(step, "step")
        self._call("command", _number(request, "request"), self._pes([pe])[0], text, len(text))

    def program_end(self, request):
        """Ends the program on all its PEs: the launch can complete."""
        self._call("program_end", _number(request, "request"))

    def map(self, va, addresses, pes=None, pages=1):
        """Maps `pages` pages from va on, a multiple of the page size, to addresses[i] on for pes[i]. Returns the request."""
        pes, addresses = self._pes(pes), _addresses(addresses)
        if len(addresses) != len(pes):
            raise ValueError(f"{len(addresses)} addresses for {len(pes)} PEs")
        return self._u64("map", pes, addresses, len(pes), _number(va, "va"), _number(pages, "pages"))

    def unmap(self, va, pes=None, pages=1):
        """Unmaps `pages` pages from va on, a multiple of the page size. Returns the request."""
        pes = self._pes(pes)
        return self._u64("unmap", pes, len(pes), _number(va, "va"), _number(pages, "pages"))

    def _transfer(self, call, addresses, data):
        addresses = _addresses(addresses)
        count = len(addresses)
        if not _is_number(data):
            view = _view(data, call, fills=call == "read")
            if count and view.nbytes % count:
                raise ValueError(f"{call}: {view.nbytes} bytes are not equal parts for {count} addresses")
            with _address(view) as at:
                return self._u64(call, addresses, count, view.nbytes // max(count, 1), at)
        return self._u64(call, addresses, count, _number(data, "bytes"), None)

    def write(self, addresses, data):
        """Writes an equal part of `data` to each address over PCIe and the fabric. The bytes are in memory at once, the
        request is complete when the host has the answer. `data` may be a number of bytes for each: only time passes.
        Returns the request. A BAD_ADDRESS in a cube that exists is a failure of the request, else Error."""
        return self._transfer("write", addresses, data)

    def read(self, addresses, data):
        """Reads into an equal part of `data` from each address, as write does: the bytes are those at this moment."""
        return self._transfer("read", addresses, data)

    # ---- memory without time

    def poke(self, address, data):
        """Puts the bytes of `data` into a memory. Raises Error if they are not within one."""
        view = _view(data, "poke")
        with _address(view) as at:
            self._call("poke", _number(address, "address"), at, view.nbytes)

    def peek(self, address, data):
        """Fills `data` from a memory, and returns it; a number of bytes gives a new bytearray. Pending results are computed
        first. Raises Error if the bytes are not within one memory, or results that data=False does not compute."""
        if _is_number(data):
            data = bytearray(_number(data, "bytes", 62))
        view = _view(data, "peek", fills=True)
        with _address(view) as at:
            self._call("peek", _number(address, "address"), at, view.nbytes)
        return data

    def tensor(self, name, shape, dtype, space="hbm", split="rows", pes=None, grid=(0, 0)):
        """Makes a Tensor for arguments of kernels, of at most four axes: dtype of DTYPES or NumPy's name of it, space of
        SPACES, split of SPLITS over the PEs (of "whole", the first of them has it), grid of "blocks". Raises Error if a
        memory has no place for it."""
        dtype = str(getattr(dtype, "name", None) or getattr(dtype, "__name__", dtype))
        dtype = next((word for word, (numpy_name, _) in DTYPES.items() if numpy_name == dtype and word != "bf16"), dtype)
        shape = tuple(_number(size, "a size of the shape") for size in _several(shape))
        if len(shape) > RANK:
            raise ValueError(f"a tensor has at most {RANK} axes, not {len(shape)}")
        pes = self._pes(pes)
        if split == "whole":
            pes = self._pes(list(pes)[:1])
        rows, cols = (_number(size, "a size of the grid", 32) for size in grid)
        ask = _sized(_Tensor, name=_text(name, "name"), dtype=_word(dtype, tuple(DTYPES), "dtype"), rank=len(shape), size=shape,
                     space=_word(space, SPACES, "space"), split=_word(split, SPLITS, "split"), rows=rows, cols=cols, pes=pes,
                     pe_count=len(pes))
        made = c_void_p()
        self._call("tensor", byref(ask), byref(made))
        return Tensor(self, made.value, name, shape, dtype, len(pes))

    # ---- benches and results

    def run_bench(self, bench, /, **params):
        """Runs a bench to its end with its parameters, on an instance that is new or reset. Returns the JSON result of
        `SIM run` as a dict. Raises RunFailed, which has that dict, if it fails or its data are wrong, Error for wrong use."""
        pairs = _texts(params, "params")
        self._call("run_bench", _text(bench, "bench"), pairs, len(pairs))
        return self.result()

    def result(self):
        """The result so far as a dict: of a bench that of `SIM run --json`, else that of `SIM replay --json`."""
        return self._json("result_json")

    def describe(self):
        """As Machine.describe, with the numbers of this instance."""
        return self._json("describe")

    def stat(self, name):
        """A number of the result by its path: "end_ps", "launches.0.pes.3.dma_ps". Raises Error if there is none."""
        return self._u64("stat", _text(name, "name"))

    def stats(self):
        """All numbers of the result by their paths, in order."""
        found = []
        self._call("stats", _STATS(lambda _, name, value: found.append((name.decode(), value)) or 0), None)
        return dict(found)

    def trace(self, visitor):
        """From now on visitor gets each event of a trace (docs/results.md) as a dict, as the instants end: a function, or a
        list that the events are added to. None: no more."""
        add = visitor.append if isinstance(visitor, list) else visitor
        if add is not None and not callable(add):
            raise TypeError(f"the visitor is a function or a list, not {type(visitor).__name__}")
        hook = _TRACE(self._hooks.guard(lambda _, event: add(json.loads(event[0].line)))) if add else _TRACE()
        status, text = self._status("trace", hook, None)
        if status == "KB_OK":
            self._hooks.c_trace = hook                  # the library calls it until the next one is set
        self._end(status, text)


class State:
    """What Instance.save returns; `buffer` has its bytes."""

    def __init__(self, sim, buffer):
        self.buffer, self.tensors = buffer, sim._tensors

    def __repr__(self):
        return f"<kbsim.State of {len(self.buffer)} bytes>"


class Tensor:
    """A tensor of an Instance, which goes into arguments of kernels: `name`, `shape`, `dtype`. It ends with the instance's
    reset, and with a restore of a state that it is not in."""

    def __init__(self, sim, handle, name, shape, dtype, shards):
        self.name, self.shape, self.dtype = name, shape, dtype
        self._sim, self._handle, self._shards = sim, handle, shards
        sim._tensors_made += 1
        self._number = sim._tensors_made
        sim._tensors |= {self._number}

    def __repr__(self):
        return f"<kbsim.Tensor {self.name}: {self.dtype}{list(self.shape)}>"

    def _pointer(self, sim):
        if sim is not self._sim:
            raise ValueError(f"tensor {self.name!r} is of another instance")
        if self._number not in sim._tensors:
            raise ValueError(f"tensor {self.name!r} was made before the instance was reset or restored")
        return self._handle

    def _checked(self, data, what, fills=False):
        """A view of data that are this tensor's elements. bytes and bytearray have no dtype."""
        view, (numpy_name, kind) = _view(data, f"tensor {self.name!r}: {what}", fills), DTYPES[self.dtype]
        if not isinstance(data, (bytes, bytearray)):
            if view.format.lstrip("@=<") != kind:
                raise TypeError(f"tensor {self.name!r}: {what}: {self.dtype} is numpy.{numpy_name}, "
                                f"not {getattr(data, 'dtype', view.format)}")
            if view.shape != self.shape:
                raise ValueError(f"tensor {self.name!r}: {what}: the shape is {self.shape}, not {view.shape}")
        return view

    def set(self, data):
        """Sets all elements, without time: an array of the same shape and dtype, or the row-major bytes."""
        view, handle = self._checked(data, "set"), self._pointer(self._sim)
        with _address(view) as at:
            self._sim._call("tensor_set", handle, at, view.nbytes)

    def get(self, out=None):
        """Fills `out` with all elements, without time, and returns it; None: a new array of NumPy. Pending results are
        computed first."""
        handle = self._pointer(self._sim)
        if out is None:
            import numpy                                # pylint: disable=import-outside-toplevel; it is optional
            out = numpy.empty(self.shape, DTYPES[self.dtype][0])
        view = self._checked(out, "get", fills=True)
        with _address(view) as at:
            self._sim._call("tensor_get", handle, at, view.nbytes)
        return out

    def shards(self):
        """(address, bytes) of each PE's elements, for write, read and map."""
        handle, found = self._pointer(self._sim), []
        for i in range(self._shards):
            address, size = c_uint64(), c_uint64()
            self._sim._call("tensor_shard", handle, i, byref(address), byref(size))
            found.append((address.value, size.value))
        return found
