! An ordinary Fortran program of all blocking collectives, by the module mpi.
program fortran_collectives
  use mpi
  implicit none
  include 'fortran_collectives.inc'
end program
