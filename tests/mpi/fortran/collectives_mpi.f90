! An ordinary Fortran program of all collectives, blocking and non-blocking, with the module mpi.
program fortran_collectives
  use mpi
  implicit none
  integer :: requests(7), there
  include 'collectives.inc'
end program
