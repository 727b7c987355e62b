"""hips.nn.Embedding learns what torch.nn.Embedding learns from the whole batch, on one node and on several."""

import os
import subprocess
import sys
import time
import unittest

import torch

NUM_ROWS, DIM, BATCH, STEPS, LR = 50, 6, 36, 12, 0.1


def batch_of(step):
    values = torch.Generator().manual_seed(step)
    return torch.randint(NUM_ROWS, (BATCH, 3), generator=values), torch.randn(BATCH, DIM, generator=values)


def loss_of(rows, targets):
    return ((rows.sum(1) - targets) ** 2).sum(1).mean()


def train(localize):
    import hips
    import hips.nn

    comm = hips.Communicator()
    words = hips.nn.Embedding(comm, NUM_ROWS, DIM, lr=LR, init_std=0.5, seed=3, localize=localize)
    reference = torch.nn.Embedding(NUM_ROWS, DIM, _weight=words.rows())
    assert 0.3 < reference.weight.std() < 0.7, reference.weight.std()
    share = slice(comm.rank * BATCH // comm.size, (comm.rank + 1) * BATCH // comm.size)
    for step in range(STEPS):
        indices, targets = batch_of(step)
        words.prefetch(indices[share])
        comm.barrier()
        loss = loss_of(words(indices[share]), targets[share])
        comm.barrier()  # all have pulled before one pushes: as one batch
        loss.backward()
        comm.barrier()
        reference.zero_grad()
        whole = loss_of(reference(indices), targets)
        whole.backward()
        assert abs(comm.allreduce(float(loss)) / comm.size - float(whole)) < 1e-4 * float(whole), (loss, whole)
        with torch.no_grad():
            reference.weight -= LR * reference.weight.grad
    trained = words.rows()
    assert torch.allclose(trained, reference.weight, atol=1e-5), (trained - reference.weight).abs().max()
    assert torch.equal(words.rows(7, 9), trained[7:9])
    comm.barrier()
    with torch.no_grad():
        assert torch.equal(words(torch.tensor([[7, 8]])), trained[7:9].unsqueeze(0))
    assert not words.eval()(torch.tensor(7)).requires_grad
    try:
        words(torch.tensor([NUM_ROWS]))
    except ValueError as error:
        assert f"key {NUM_ROWS} is out of range" in str(error), error
    else:
        raise AssertionError("no error")
    assert repr(words) == f"Embedding({NUM_ROWS}, {DIM}, lr={LR})"
    comm.barrier()
    if comm.rank == 0:
        words.load_rows(trained[3:5] * 2, first=7)
    comm.barrier()
    assert torch.equal(words.rows(7, 9), trained[3:5] * 2) and words.rows(4, 4).shape == (0, DIM)
    comm.barrier()
    words.close()
    zeros = hips.nn.Embedding(comm, 10**12, 4, lr=1, init_std=0, rows_per_node=1000, average=False, dtype=torch.float64, staleness=1)
    zeros(torch.tensor([10**12 - 1])).sum().backward()
    for _ in range(3):
        zeros.step()
    comm.barrier()
    assert zeros.rows(10**12 - 1).tolist() == [[-comm.size] * 4]
    comm.barrier()
    zeros.close()
    # One rank fails; the others' waits end.
    begin = time.monotonic()
    try:
        with hips.nn.Embedding(comm, 100, 4, lr=1, staleness=0) as failing:
            if comm.rank == comm.size - 1:
                raise KeyError("of the program")
            while True:
                failing.step()
                if comm.size == 1:
                    break
    except KeyError:
        assert comm.rank == comm.size - 1
    except hips.Error as error:
        assert comm.rank < comm.size - 1 and "exception" in str(error), error
    else:
        raise AssertionError("no error")
    assert time.monotonic() - begin < 60


class EmbeddingTest(unittest.TestCase):
    def run_ranks(self, ranks, *how, **env):
        done = subprocess.run([sys.executable, "-m", "hips.launch", "-n", str(ranks), __file__, "--rank", *how],
                              env=dict(os.environ, **env), capture_output=True, text=True, timeout=200, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_one_node(self):
        for ranks in (1, 2, 3):
            self.run_ranks(ranks)

    def test_nodes(self):
        self.run_ranks(2, HIPS_TOPO="switch:2", HIPS_TRANSPORT="tcp")
        self.run_ranks(4, "--stay", HIPS_TOPO="switch:2/2", HIPS_TRANSPORT="tcp")


if __name__ == "__main__":
    if "--rank" in sys.argv:
        torch.set_num_threads(1)
        train("--stay" not in sys.argv)
    else:
        unittest.main(argv=sys.argv[:1] + ["-v"] + sys.argv[1:])
