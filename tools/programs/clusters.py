"""K-means with numpy and mpi4py: two allreduces of small arrays for each iteration. Prints the sum of squared distances."""

import numpy
from mpi4py import MPI

POINTS, DIMENSIONS, CLUSTERS, ITERATIONS = 10_000, 8, 12, 150
comm = MPI.COMM_WORLD
# The same points for any number of ranks.
everything = numpy.random.default_rng(1).integers(0, 1000, (POINTS, DIMENSIONS)).astype(numpy.float64)
mine = numpy.array_split(everything, comm.size)[comm.rank]
centres = everything[:CLUSTERS].copy()
for _ in range(ITERATIONS):
    distances = ((mine[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    nearest = distances.argmin(axis=1)
    sums = numpy.zeros((CLUSTERS, DIMENSIONS))
    counts = numpy.zeros(CLUSTERS)
    numpy.add.at(sums, nearest, mine)
    numpy.add.at(counts, nearest, 1)
    comm.Allreduce(MPI.IN_PLACE, sums)
    comm.Allreduce(MPI.IN_PLACE, counts)
    centres = sums / numpy.maximum(counts, 1)[:, None]
total = numpy.array([distances.min(axis=1).sum()])
comm.Allreduce(MPI.IN_PLACE, total)
if comm.rank == 0:
    print(f"distance {total[0]:.6e}")
