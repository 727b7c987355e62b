! An ordinary Fortran program of all blocking collectives, by the module mpi_f08.
program fortran_collectives
  use mpi_f08
  implicit none
  include 'fortran_collectives.inc'
end program
