"""The folders of the tree, which of them each may include from, and a check of all #include lines against that.

docs/architecture.md tells why; this table is what counts.
"""
import os
import re

TOPOLOGY = {"topology", "topology/families", "topology/formats", "topology/parts"}
BELOW_PLAN = {"include", "lib/base", "lib/pattern"} | TOPOLOGY
PLAN = {"lib/plan", "lib/plan/steps", "lib/plan/fabric", "lib/plan/algorithms", "lib/plan/check", "lib/plan/prune",
        "lib/plan/formats"}
# What the library preloaded into MPI programs does not hold.
READERS = {"topology/clusters", "topology/cabling", "topology/wiring", "topology/health", "lib/plan/formats/msccl", "lib/plan/formats/goal", "lib/readers"}
BELOW_EXEC = BELOW_PLAN | PLAN | {"lib/cost", "lib/reduce", "transports"}
BELOW_COMM = BELOW_EXEC | {"lib/exec", "lib/node", "transports/shm", "transports/tcp", "transports/verbs"}
ALL_OF_LIB = BELOW_COMM | {"lib/comm", "lib/ps", "transports/inproc"}

# Folder -> folders it may include from, besides itself. A file belongs to the longest folder that fits.
LAYERS = {
    "include": set(),
    "lib/base": {"include"},
    "topology": {"include", "lib/base"},
    "topology/families": {"include", "lib/base", "topology"},
    "topology/formats": {"include", "lib/base", "topology", "topology/families"},
    "topology/parts": {"include", "lib/base", "topology", "topology/families", "topology/formats"},
    "topology/cabling": {"include", "lib/base"} | TOPOLOGY,
    "topology/wiring": {"include", "lib/base", "topology/cabling"} | TOPOLOGY,
    "topology/health": {"include", "lib/base", "topology/cabling"} | TOPOLOGY,
    "topology/clusters": {"include", "lib/base", "topology/cabling", "topology/wiring"} | TOPOLOGY,
    "topology/discover": {"include", "lib/base"} | TOPOLOGY,
    "transports": {"include", "lib/base"},
    "transports/inproc": {"include", "lib/base", "transports"},
    "transports/shm": {"include", "lib/base", "transports"},
    "transports/tcp": {"include", "lib/base", "transports"},
    "transports/verbs": {"include", "lib/base", "transports"},
    "lib/pattern": {"include", "lib/base"},
    "lib/reduce": {"include", "lib/base"},
    "lib/node": {"include", "lib/base", "lib/reduce"},
    "lib/plan": BELOW_PLAN,
    "lib/plan/steps": BELOW_PLAN | {"lib/plan"},
    "lib/plan/fabric": BELOW_PLAN | {"lib/plan"},
    "lib/plan/algorithms": BELOW_PLAN | {"lib/plan", "lib/plan/steps", "lib/plan/fabric"},
    "lib/plan/check": BELOW_PLAN | {"lib/plan"},
    "lib/plan/prune": BELOW_PLAN | {"lib/plan", "lib/plan/steps"},
    "lib/plan/formats": BELOW_PLAN | {"lib/plan", "lib/plan/steps", "lib/plan/check"},
    "lib/plan/formats/msccl": BELOW_PLAN | {"lib/plan", "lib/plan/steps", "lib/plan/formats"},
    "lib/plan/formats/goal": BELOW_PLAN | {"lib/plan", "lib/plan/formats"},
    "lib/readers": BELOW_PLAN | {"topology/clusters", "topology/cabling", "topology/wiring", "lib/plan", "lib/plan/formats", "lib/plan/formats/msccl"},
    "lib/cost": BELOW_PLAN | PLAN,
    # The executor sees a transport only through transport.hpp, which lies in the folder above them all.
    "lib/exec": BELOW_EXEC - {"lib/cost"},
    "lib/comm": BELOW_COMM | {"topology/discover"},
    "lib/ps": {"include", "lib/base", "lib/reduce", "lib/comm", "topology", "transports"},
    "lib/mpi": {"include", "lib/base", "lib/comm"} | TOPOLOGY | PLAN,
    "tools": ALL_OF_LIB | READERS | {"topology/discover"},
    "examples": {"include"},
    "python/hips_torch": {"include"},
    "python/hips/src/comm": {"include"},
    "python/hips/src/plans": ALL_OF_LIB | READERS | {"tools"},
    "tests": ALL_OF_LIB | READERS | {"topology/discover", "lib/mpi", "tools", "examples"},
}

SOURCE = re.compile(r"\.(hpp|cpp|h|c)$")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)

# What a user of the library has anyway. Headers of the C library appear in hips.h only, which C programs include.
STANDARD_CPP = set(
    """algorithm any array atomic barrier bit bitset charconv chrono codecvt compare complex concepts
    condition_variable coroutine deque exception execution filesystem format forward_list fstream functional future
    initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
    memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator
    semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view
    syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray
    variant vector version cassert cctype cerrno cfenv cfloat cinttypes climits clocale cmath csetjmp csignal cstdarg
    cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype""".split())
STANDARD_C = set(
    """assert.h ctype.h errno.h fenv.h float.h inttypes.h limits.h locale.h math.h setjmp.h signal.h stdarg.h
    stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h time.h""".split())
# The door from an MPI communicator needs its type.
PUBLIC_EXCEPTIONS = {("include/hips/mpi.h", "mpi.h")}


def layer_of(path):
    """The folder of LAYERS that a path from the root belongs to, or None."""
    fitting = [layer for layer in LAYERS if path.startswith(layer + "/")]
    return max(fitting, key=len, default=None)


def sources(root):
    """All C and C++ files of the tree, as paths from its root."""
    for top in sorted({layer.split("/")[0] for layer in LAYERS}):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if SOURCE.search(name):
                    yield os.path.relpath(os.path.join(folder, name), root)


def includes(root, path):
    """(line number, name, quoted) of each #include of a file; those in comments do not count."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = file.read()
    text = COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield line, match.group(1) or match.group(2), match.group(1) is not None


def findings(root):
    """What is wrong, one sentence each with file and line."""
    for path in sources(root):
        layer = layer_of(path)
        if layer is None:
            yield f"{path}: belongs to no folder of tests/architecture/layers.py; add its folder there"
            continue
        for line, name, quoted in includes(root, path):
            where = f"{path}:{line}"
            if layer == "include" and not allowed_in_public(path, name):
                yield f"{where}: a public header includes {name}; only <hips/...> and the standard library may"
            if name.startswith("hips/"):
                target = "include"
                if quoted:
                    yield f'{where}: write <{name}> for a public header'
            elif quoted:
                if not os.path.exists(os.path.join(root, name)):
                    yield f'{where}: "{name}" is not named from the root of the tree'
                    continue
                target = layer_of(name)
            else:
                continue
            if target != layer and target not in LAYERS[layer]:
                yield f"{where}: {layer} may not include from {target} ({name})"


def allowed_in_public(path, name):
    if name.startswith("hips/") or (path, name) in PUBLIC_EXCEPTIONS:
        return True
    return name in (STANDARD_C if path.endswith(".h") else STANDARD_CPP)
