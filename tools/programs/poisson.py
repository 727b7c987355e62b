"""Conjugate gradients on a Poisson problem with PETSc: poisson.py cg|pipecg. Prints the iterations and the norm of the residual."""

import sys

import petsc4py

petsc4py.init(["poisson", "-ksp_type", sys.argv[1], "-pc_type", "jacobi"])
from petsc4py import PETSc  # noqa: E402 - after init()

SIDE, SOLVES = 128, 30
matrix = PETSc.Mat().createAIJ((SIDE * SIDE, SIDE * SIDE), nnz=(5, 2))
for row in range(*matrix.getOwnershipRange()):
    y, x = divmod(row, SIDE)
    neighbours = [(y + dy) * SIDE + x + dx for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)) if 0 <= x + dx < SIDE and 0 <= y + dy < SIDE]
    matrix.setValues(row, [row, *neighbours], [4.0] + [-1.0] * len(neighbours))
matrix.assemble()
solution, source = matrix.createVecs()
source.set(1.0)
solver = PETSc.KSP().create()
solver.setOperators(matrix)
solver.setTolerances(rtol=1e-8, max_it=4000)
solver.setFromOptions()
for _ in range(SOLVES):
    solution.set(0.0)
    solver.solve(source, solution)
norm = solution.norm()
if PETSc.COMM_WORLD.rank == 0:
    print(f"converged {int(solver.getConvergedReason() > 0)} norm {norm:.6e}")
