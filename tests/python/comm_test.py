"""The package hips between ranks: each collective in each form, arrays of all kinds, errors, what a lost rank does to the others.

    comm_test.py            the tests; each starts this file again on some ranks with the name of a function below
"""

import array
import asyncio
import gc
import io
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest

import hips
import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from file_forms import GRAPH

SEED = int(os.environ.get("HIPS_SEED", "1"))
TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bool")


def reduced(op, arrays):
    """The reduction of the ranks' arrays, by numpy."""
    wide = numpy.stack(arrays)
    if wide.dtype == bool:
        return {"sum": wide.any, "max": wide.any, "bor": wide.any, "lor": wide.any, "prod": wide.all, "min": wide.all, "band": wide.all,
                "land": wide.all, "bxor": lambda axis: wide.sum(axis=axis) % 2 == 1, "lxor": lambda axis: wide.sum(axis=axis) % 2 == 1}[op](axis=0)
    if op == "avg":
        return (wide.astype("float64").mean(axis=0) if wide.dtype.kind == "f" else numpy.trunc(wide.astype("int64").sum(axis=0) / len(arrays))).astype(wide.dtype)
    return {"sum": lambda: wide.sum(axis=0, dtype=wide.dtype), "prod": lambda: wide.prod(axis=0, dtype=wide.dtype), "min": lambda: wide.min(axis=0),
            "max": lambda: wide.max(axis=0), "band": lambda: numpy.bitwise_and.reduce(wide), "bor": lambda: numpy.bitwise_or.reduce(wide),
            "bxor": lambda: numpy.bitwise_xor.reduce(wide), "land": lambda: wide.all(axis=0).astype(wide.dtype),
            "lor": lambda: wide.any(axis=0).astype(wide.dtype), "lxor": lambda: (wide.astype(bool).sum(axis=0) % 2).astype(wide.dtype)}[op]()


class Trial:
    """One random collective, the same on all ranks, checked on each against numpy."""

    def __init__(self, comm, number):
        self.comm = comm
        same = random.Random(SEED * 100003 + number)
        self.kind = same.choice(("allreduce", "reduce", "reduce_scatter", "bcast", "allgather", "gather", "scatter", "alltoall"))
        self.type = same.choice(TYPES)
        self.op = same.choice(("sum", "prod", "min", "max", "avg", "band", "bor", "bxor", "land", "lor", "lxor"))
        if self.type.startswith("float") and self.op[0] in "bl":
            self.op = "sum"
        if self.type == "bool" and self.op == "avg":
            self.op = "max"
        self.shape = same.choice(((), (1,), (0,), (5,), (3, 4), (1000,), (31, 700)))
        self.root = same.randrange(comm.size)
        self.form = same.choice(("now", "out", "started", "in place"))
        if self.kind in ("reduce_scatter", "scatter", "alltoall"):
            self.shape = (comm.size, *self.shape)
        least = 0 if self.type.startswith(("uint", "bool")) else -2
        self.all = [numpy.random.default_rng(SEED * 7 + number * 64 + rank).integers(least, 3, self.shape).astype(self.type) for rank in range(comm.size)]

    def expected(self):
        rank, is_root = self.comm.rank, self.comm.rank == self.root
        if self.kind == "allreduce":
            return reduced(self.op, self.all)
        if self.kind == "reduce":
            return reduced(self.op, self.all) if is_root else None
        if self.kind == "reduce_scatter":
            return reduced(self.op, self.all)[rank:rank + 1]
        if self.kind == "bcast":
            return self.all[self.root]
        if self.kind == "allgather":
            return numpy.stack(self.all)
        if self.kind == "gather":
            return numpy.stack(self.all) if is_root else None
        if self.kind == "scatter":
            return self.all[self.root][rank]
        return numpy.stack([one[rank] for one in self.all])

    def run(self):
        given = numpy.array(self.all[self.comm.rank])
        options = {}
        if self.kind in ("allreduce", "reduce", "reduce_scatter"):
            options["op"] = self.op
        if self.kind in ("reduce", "bcast", "gather", "scatter"):
            options["root"] = self.root
        expected = self.expected()
        if self.form == "in place" and self.kind in ("allreduce", "reduce"):
            options["out"] = given
        if self.form == "out" and self.kind != "bcast" and expected is not None:
            options["out"] = numpy.empty_like(expected)
        if self.form == "started":
            result = getattr(self.comm, "i" + self.kind)(given, **options).wait()
        else:
            result = getattr(self.comm, self.kind)(given, **options)
        what = (SEED, self.kind, self.type, self.op, self.shape, self.root, self.form)
        assert (result is None) == (expected is None) or self.form == "in place", what
        if expected is not None:
            assert result.dtype == expected.dtype and numpy.shape(result) == expected.shape, (what, result, expected)
            close = numpy.array_equal(result, expected) if expected.dtype.kind != "f" else numpy.allclose(result, expected, rtol=2e-3)
            assert close, (what, result, expected)


def random_collectives():
    with hips.Communicator() as comm:
        for number in range(300):
            Trial(comm, number).run()


def models():
    comm = hips.Communicator(name="models")
    size, rank = comm.size, comm.rank
    with hips.Model(comm, numpy.full((300, 200), 0.5), num_shards=1, delay_max=10 * size) as model:
        values = model.fetch()
        assert values.shape == (300, 200) and values.dtype == "float64" and (values == 0.5).all()
        comm.barrier()
        update = numpy.zeros((300, 200))
        update[rank] = 1
        values, applied = model.push_fetch(update)
        assert applied.tolist() == [True] and (values[rank] == 1.5).all()
        assert model.ipush(update).wait().all()
        values, applied = model.ipush_fetch(update, out=values).wait()
        assert applied.all() and (values[rank] == 3.5).all()
        comm.barrier()
        out = numpy.zeros((300, 200))
        assert model.fetch(out=out) is out and (out[:size] == 3.5).all() and (out[size:] == 0.5).all()
        assert (model.ifetch().wait() == out).all()
        assert model.shards == [slice(0, 60000)] and "(300, 200)" in repr(model)
        for call, error in ((lambda: model.push(numpy.zeros(5)), "update has 5 elements; expected 60000"),
                            (lambda: model.fetch(out=numpy.zeros((300, 200), "float32")), "out has type float32; the model has float64")):
            try:
                call()
            except (TypeError, ValueError) as found:
                assert error in str(found), found
            else:
                raise AssertionError(error)
        comm.barrier()
    try:
        model.fetch()
    except ValueError as found:
        assert "closed" in str(found)
    else:
        raise AssertionError("a closed model")


def tables_of_rows():
    comm = hips.Communicator(name="tables")
    size, rank = comm.size, comm.rank
    with hips.Table(comm, 100, (2, 3), "float64", first_row=0.5) as table:
        keys = [7, 99, 7, 3]
        table.push(keys, numpy.full((4, 2, 3), rank + 1.0))
        comm.barrier()
        total = size * (size + 1) / 2
        rows = table.pull(numpy.array(keys, "int32"))
        assert rows.shape == (4, 2, 3) and (rows[:, 0, 0] == [0.5 + 2 * total, 0.5 + total, 0.5 + 2 * total, 0.5 + total]).all(), rows
        comm.barrier()
        own = numpy.arange(rank, 100, size)
        table.localize(own)
        comm.barrier()
        rows, here = table.pull_if_local(own)
        assert here.all() and here.dtype == bool
        table.set(own, float(rank))
        comm.barrier()
        requests = [table.ipush([key], 1.0) for key in range(100)]
        hips.wait_all(requests)
        comm.barrier()
        all_rows = table.ipull(range(100)).wait()
        assert (all_rows[:, 1, 2] == [key % size + size for key in range(100)]).all(), all_rows[:, 1, 2]
        assert table.pull([]).shape == (0, 2, 3)
        out = numpy.zeros((1, 2, 3))
        assert table.pull([5], out=out) is out and out[0, 0, 0] == 5 % size + size
        for call, error in ((lambda: table.pull([100]), "key 100 is out of range"), (lambda: table.pull([3, -1]), "key -1 is negative"), (lambda: table.pull([[1]]), "expected a list of integers"),
                            (lambda: table.pull([1.5]), "expected a list of integers"), (lambda: table.pull([1], out=numpy.zeros(6, "float32")), "float32"),
                            (lambda: table.pull([1], out=numpy.zeros(5)), "expected 1 keys times 6"), (lambda: table.push([1, 2], numpy.zeros((3, 2, 3))), "")):
            try:
                call()
            except (hips.Error, TypeError, ValueError) as found:
                assert error in str(found), found
            else:
                raise AssertionError(error)
        comm.barrier()
    with hips.Table(comm, 10, update="max") as most:
        most.push([3], float(rank))
        most.advance_clock()
        assert most.pull([3]).tolist() == [size - 1]
        comm.barrier()
        most.intent([rank % 10], 1, 3)
        while not most.pull_if_local([rank % 10])[1].all():
            pass
        try:
            most.intent([3], 2, 1)
        except hips.Error as found:
            assert "an intent ends at clock 1, before it starts at 2" in str(found), found
        else:
            raise AssertionError("an intent that ends before it starts")
        comm.barrier()
    with hips.Table(comm, 10, dtype="bool") as flags:
        for _ in range(2):
            flags.push([4], True)
        comm.barrier()
        assert flags.pull([4, 5]).tolist() == [True, False]
        comm.barrier()
    try:
        hips.Model(comm, numpy.zeros(3, "bool"))
    except TypeError as found:
        assert "bool" in str(found), found
    else:
        raise AssertionError("a model of bool")
    with hips.Table(comm, 10, replicas_per_node=10) as shared:
        shared.intent([1, 2], 0, 4)
        for clock in range(3):
            shared.push([1, 2], [1.0, rank])
            shared.advance_clock()
            assert shared.pull([1])[0] >= (clock + 1) * size
        comm.barrier()
        assert shared.pull([2]).tolist() == [3 * size * (size - 1) / 2]


def kinds_of_arrays():
    comm = hips.Communicator(name="kinds")
    size, rank = comm.size, comm.rank
    assert comm.allreduce(rank) == size * (size - 1) // 2
    assert comm.allreduce([1.5, 2]).tolist() == [1.5 * size, 2 * size]
    own = array.array("d", [1, 2, 3])
    assert comm.allreduce(own).tolist() == [size, 2 * size, 3 * size]
    comm.allreduce(own, out=own)
    assert own.tolist() == [size, 2 * size, 3 * size]
    view = memoryview(bytearray([rank] * 4))
    assert bytes(comm.bcast(view, root=size - 1)) == bytes([size - 1] * 4)
    assert comm.allgather(b"ab").tobytes() == b"ab" * size
    columns = numpy.arange(12.0).reshape(3, 4).T
    assert numpy.array_equal(comm.allreduce(columns), columns * size)
    pairs = numpy.array([(rank, 0.5)], dtype="i4,f4")
    assert [int(one[0][0]) for one in comm.allgather(pairs)] == list(range(size))
    registered = hips.empty((100, 1000))
    registered[:] = 1
    comm.allreduce(registered, "avg", out=registered)
    assert (registered == 1).all()
    persistent = comm.allreduce_init(registered, out=registered)
    for times in range(1, 4):
        assert persistent.start().wait() is registered and registered[0, 0] == size**times
    many = [numpy.full(n, rank, "float32") for n in (1, 10, 100_000, 0, 3)]
    comm.allreduce_coalesced(many, priorities=[4, 3, 2, 1, 0])
    assert all((one == size * (size - 1) / 2).all() for one in many)
    assert all((one == size * size * (size - 1) / 2).all() for one in comm.iallreduce_coalesced(many).wait())
    try:
        import torch
    except ImportError:
        return
    for kind in (torch.bfloat16, torch.float32, torch.int64):
        assert comm.allreduce(torch.empty(3, 0, dtype=kind)).shape == (3, 0)
        total = comm.allreduce(torch.ones(3, 2, dtype=kind))
        assert total.dtype == kind and (total == size).all()
    assert comm.allgather(torch.full((2,), rank)).tolist() == [[r, r] for r in range(size)]


def requests():
    comm = hips.Communicator()
    one = numpy.ones(1000)
    started = [comm.iallreduce(one * n) for n in range(5)]
    assert [result[0] for result in hips.wait_all(started)] == [n * comm.size for n in range(5)]
    started = [comm.iallreduce(one), comm.ibarrier()]
    ended = {hips.wait_any(started), hips.wait_any(started)}
    assert ended == {0, 1} and hips.wait_any(started) is None and started[0].test()
    total = comm.allreduce(numpy.float32(2))
    assert isinstance(total, numpy.float32) and total == 2 * comm.size
    # A request may be in a list twice.
    one_of_two = comm.iallreduce(one)
    assert [result[0] for result in hips.wait_all([one_of_two, one_of_two])] == [comm.size] * 2
    started = [comm.iallreduce(one), comm.iallreduce_coalesced([one.copy()])]
    ended = [hips.wait_any([started[0], *started, *started]) for _ in range(2)]
    assert sorted(ended) == [0, 2] and hips.wait_any([started[0], *started]) is None
    named = numpy.zeros(2, [("O", "i4"), ("x", "f8")])
    named["O"] = comm.rank
    assert comm.allgather(named)["O"].tolist() == [[r, r] for r in range(comm.size)]
    with comm.iallreduce(one) as request:
        pass
    assert (request.result == comm.size).all()

    async def several():
        return await asyncio.gather(*(wait(comm.iallreduce(one * n)) for n in range(3)))

    async def wait(request):
        return (await request)[0]

    assert asyncio.run(several()) == [0, comm.size, 2 * comm.size]
    # The memory of a request lives as long as the call.
    request = comm.iallreduce(numpy.ones(300_000), out=None)
    gc.collect()
    assert request.wait()[-1] == comm.size
    half = comm.split(comm.rank % 2, -comm.rank)
    same = [rank for rank in reversed(range(comm.size)) if rank % 2 == comm.rank % 2]
    assert half.size == len(same) and half.allgather(comm.rank).tolist() == same
    assert comm.split(None if comm.rank == 0 else 1) is None or comm.rank > 0
    with comm.duplicate() as other:
        assert other.allreduce(1) == comm.size
    try:
        other.barrier()
    except ValueError as error:
        assert "is closed" in str(error)
    else:
        raise AssertionError("a closed communicator took a call")


def own_allgather():
    """A communicator of another's ranks, by its allgather, as that of mpi4py."""
    comm = hips.Communicator()

    class LikeMpi:
        def Get_rank(self):
            return comm.rank

        def Get_size(self):
            return comm.size

        def allgather(self, text):
            return [one.tobytes() for one in comm.allgather(text)]

    other = hips.Communicator.from_mpi(LikeMpi(), timeout=20)
    assert (other.rank, other.size, other.allreduce(1)) == (comm.rank, comm.size, comm.size)

    def broken(text):
        raise KeyError("no such thing")

    for function, kind, text in ((broken, KeyError, "no such thing"), (lambda text: [text], ValueError, "gave 1 objects; expected"),
                                 (lambda text: [b"x"] * comm.size, ValueError, "an object of 1 bytes; expected")):
        try:
            hips.Communicator(rank=comm.rank, size=comm.size, allgather=function)
        except kind as error:
            assert text in str(error), error
        else:
            assert comm.size == 1, "no error"
    comm.barrier()


def wrong_arguments():
    comm = hips.Communicator()
    ones = numpy.ones(comm.size * 2)
    frozen = numpy.ones(2)
    frozen.flags.writeable = False
    for call, kind, text in (
            (lambda: comm.allreduce(ones, "summ"), ValueError, "unknown op 'summ'; expected one of \"sum\""),
            (lambda: comm.allreduce(ones, ["sum"]), ValueError, "unknown op ['sum']"),
            (lambda: comm.allreduce(ones, "band"), hips.ArgumentError, "band does not apply to float64"),
            (lambda: comm.allreduce("text"), TypeError, "str is no array of numbers"),
            (lambda: comm.allreduce(object()), TypeError, "object is no array of numbers"),
            (lambda: comm.allreduce(ones, out=ones[:1]), ValueError, "out has 1 elements; expected"),
            (lambda: comm.allreduce(ones, out=ones.astype("f4")), TypeError, "out has elements of float32; expected float64"),
            (lambda: comm.allreduce(ones, out=[0.0]), TypeError, "out is of class list; expected an array"),
            (lambda: comm.allreduce(ones.astype(complex)), TypeError, "cannot be reduced; expected integers"),
            (lambda: comm.allreduce(numpy.array([True]), "avg"), ValueError, "bool has no average"),
            (lambda: comm.bcast(frozen), ValueError, "read-only"),
            (lambda: comm.bcast(numpy.array(["a", None], dtype=object)), TypeError, "has objects of Python"),
            (lambda: comm.allgather(numpy.zeros(3, [("O", "i4"), ("x", "O")])), TypeError, "has objects of Python"),
            (lambda: comm.alltoall(numpy.ones((comm.size + 1, comm.size))), ValueError, "alltoall: the array has shape"),
            (lambda: comm.bcast(numpy.ones((4, 4))[:, :2]), ValueError, "not contiguous"),
            (lambda: comm.bcast(ones, comm.size), ValueError, f"root is {comm.size}; expected 0 to {comm.size - 1}"),
            (lambda: comm.bcast(ones, -1), ValueError, "root is -1"),
            (lambda: comm.reduce_scatter(numpy.ones(())), ValueError, "along the first axis"),
            (lambda: comm.scatter(numpy.ones((comm.size + 1, 2))), ValueError, "along the first axis"),
            (lambda: comm.scatter(None, root=comm.rank), ValueError, "the root passes an array"),
            (lambda: comm.allreduce_coalesced([ones], priorities=[1, 2]), ValueError, "2 priorities; expected none or 1"),
            (lambda: hips.Communicator(rank=1), TypeError, "belong together"),
            (lambda: hips.Communicator(timeout=0), ValueError, "timeout is 0"),
            (lambda: hips.empty(3, "O"), TypeError, "no fixed size")):
        try:
            call()
        except kind as error:
            assert text in str(error), (text, str(error))
        else:
            raise AssertionError(f"no error; expected {text}")
    # None of these took place.
    assert comm.allreduce(1) == comm.size
    try:
        hips.Communicator("bcube:3,1")
    except hips.Error as error:
        assert "takes 9 ranks" in str(error), error
    assert comm.allreduce(1) == comm.size


def lost_rank():
    comm = hips.Communicator()
    comm.barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), 9)
    try:
        while True:
            comm.allreduce(numpy.ones(100_000))
    except hips.Error as error:
        assert (error.code, error.rank) == ("peer lost", 1), (error.code, error.rank, str(error))
        print("told of it")


def left_request():
    """A request that is dropped while its call is outstanding, at the end of the program: all ranks end."""
    comm = hips.Communicator()
    if comm.rank == 0:
        request = comm.iallreduce(numpy.ones(10_000_000))  # noqa: F841
    else:
        time.sleep(0.2)


def page():
    """The programs of docs/python.md, one after the other."""
    with open(os.path.join(os.path.dirname(__file__), "../../docs/python.md"), encoding="utf-8") as file:
        blocks = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
    assert len(blocks) > 4
    names = {"compute": lambda: None, "use": lambda array: None, "open": lambda name, mode: io.StringIO(), "batches": [None] * 3,
             "weights": numpy.zeros(1000, "float32"), "step_of": lambda weights, batch: 1 - weights}
    try:
        import torch
    except ImportError:
        torch = None
    else:
        names["batches"] = [(torch.tensor([[7, 42], [7, 99_999]]), torch.ones(2, 2, 128))] * 3
        names["loss_of"] = torch.nn.functional.mse_loss
    for block in blocks:
        if "mpi4py" not in block and ("hips.nn" not in block or torch is not None):
            exec(compile(block, "docs/python.md", "exec"), names)


def shrink_and_recover():
    comm = hips.Communicator()
    table = hips.Table(comm, 100, 2)
    keys = numpy.arange(100)
    if comm.rank == 0:
        table.set(keys, numpy.arange(200, dtype="float32").reshape(100, 2))
    try:
        comm.barrier()
        if comm.rank == 0:
            comm.abort("enough")
        while True:
            comm.barrier()
    except hips.Error as error:
        assert "enough" in str(error), error
    again = comm.shrink()
    assert (again.rank, again.size) == (comm.rank, comm.size)
    table, lost = table.recover(again)
    assert lost == 0, lost
    assert (table.pull(keys) == numpy.arange(200).reshape(100, 2)).all()
    assert table.row_shape == (2,) and table.num_keys == 100
    table.close()
    first = numpy.arange(40_000, dtype="float64")
    model = hips.Model(again, first, divergence_max=0.5)
    model.push(numpy.ones(40_000))
    try:
        again.barrier()
        if again.rank == 0:
            again.abort("enough")
        while True:
            again.barrier()
    except hips.Error as error:
        assert "enough" in str(error), error
    model = model.recover(again.shrink())
    assert (model.fetch() == first + again.size).all()
    model.close()


def exception_with_an_open_table():
    comm = hips.Communicator()
    other = comm.duplicate()
    table = hips.Table(comm, 10)
    model = hips.Model(comm, numpy.zeros(4, "float32"))
    other.barrier()  # no rank is still making the model
    if comm.rank == 1:
        raise RuntimeError("as the test wants")
    try:
        table.close()
        model.close()
    except hips.Error as error:
        print(f"rank {comm.rank} heard of {error.rank}", flush=True)


class Ranks(unittest.TestCase):
    def launch(self, size, name, **variables):
        env = dict(os.environ, **variables)
        done = subprocess.run([sys.executable, "-m", "hips.launch", "-n", str(size), __file__, name], env=env, capture_output=True, text=True,
                              timeout=100, check=False)
        return done.returncode, done.stdout, done.stderr

    def check(self, name, sizes=(1, 2, 4), **variables):
        for size in sizes:
            with self.subTest(ranks=size):
                code, _, errors = self.launch(size, name, **variables)
                self.assertEqual(code, 0, errors)

    def test_an_exception_ends_tables_that_others_wait_for(self):
        code, text, errors = self.launch(3, "exception_with_an_open_table")
        self.assertEqual(code, 1, errors)
        self.assertEqual(sorted(re.findall(r"rank (\d) heard of 1", text)), ["0", "2"], errors)

    def test_collectives_are_what_they_should_be(self):
        self.check("random_collectives", (1, 2, 3))

    def test_collectives_between_nodes(self):
        self.check("random_collectives", (4,), HIPS_TOPO="bcube:2,1")

    def test_collectives_on_a_graph(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graph.yaml")
            with open(path, "w", encoding="ascii") as file:
                file.write(GRAPH)
            self.check("random_collectives", (4,), HIPS_TOPO=path)

    def test_arrays_of_all_kinds(self):
        self.check("kinds_of_arrays")

    def test_tables_of_rows(self):
        self.check("tables_of_rows")

    def test_tables_of_rows_between_nodes(self):
        self.check("tables_of_rows", (3,), HIPS_TOPO="switch:3", HIPS_TRANSPORT="tcp")

    def test_tables_are_recovered(self):
        self.check("shrink_and_recover", (2, 3))
        self.check("shrink_and_recover", (3,), HIPS_TOPO="switch:3", HIPS_TRANSPORT="tcp")

    def test_models(self):
        self.check("models")

    def test_models_between_nodes(self):
        self.check("models", (3,), HIPS_TOPO="switch:3", HIPS_TRANSPORT="tcp")

    def test_requests_and_communicators(self):
        self.check("requests")

    def test_ranks_of_another_library(self):
        self.check("own_allgather", (1, 3))

    def test_wrong_arguments_are_python_exceptions(self):
        self.check("wrong_arguments", (2,))

    def test_programs_of_the_page(self):
        self.check("page", (2,))

    def test_a_lost_rank_is_named(self):
        code, output, errors = self.launch(3, "lost_rank")
        self.assertEqual(code, 128 + 9, errors)
        self.assertEqual(output.count("told of it"), 2, errors)

    def test_a_request_that_is_left_hangs_nobody(self):
        self.check("left_request", (2,))

    def test_without_a_launcher(self):
        done = subprocess.run([sys.executable, "-c", "import hips; hips.Communicator()"], capture_output=True, text=True, timeout=60, check=False,
                              env={key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE", "HIPS_RANK", "HIPS_SIZE")})
        self.assertEqual(done.returncode, 1)
        self.assertIn("the rank of this process is unknown: set HIPS_RANK, HIPS_SIZE and HIPS_ROOT", done.stderr)


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1] in globals():
        globals()[sys.argv[1]]()
    else:
        unittest.main(argv=sys.argv[:1] + ["-v"] + sys.argv[1:])
