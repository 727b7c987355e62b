! An ordinary Fortran program of all collectives, blocking and non-blocking, with mpif.h.
program fortran_collectives
  implicit none
  include 'mpif.h'
  integer :: requests(7), there
  include 'collectives.inc'
end program
