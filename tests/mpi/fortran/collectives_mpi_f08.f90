! An ordinary Fortran program of all collectives, blocking and non-blocking, with the module mpi_f08.
program fortran_collectives
  use mpi_f08
  implicit none
  type(MPI_Request) :: requests(7)
  type(MPI_Datatype) :: there
  include 'collectives.inc'
end program
