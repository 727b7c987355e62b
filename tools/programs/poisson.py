"""Conjugate gradients on a Poisson problem with PETSc: poisson.py cg|pipecg. Prints the iterations and the norm of the residual."""

import sys

import petsc4py

petsc4py.init(["poisson", "-ksp_type", sys.argv[1], "-pc_type", "jacobi"])
from petsc4py import PETSc  # noqa: E402 - after init()

SIDE, SOLVES = 96, 12
grid = PETSc.DMDA().create([SIDE, SIDE], stencil_width=1)
matrix = grid.createMatrix()
first, last = grid.getRanges()
for y in range(*last):
    for x in range(*first):
        row = PETSc.Mat.Stencil(index=(x, y))
        matrix.setValueStencil(row, row, 4.0)
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            if 0 <= x + dx < SIDE and 0 <= y + dy < SIDE:
                matrix.setValueStencil(row, PETSc.Mat.Stencil(index=(x + dx, y + dy)), -1.0)
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
