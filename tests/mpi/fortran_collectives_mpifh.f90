! An ordinary Fortran program of all blocking collectives, by mpif.h.
program fortran_collectives
  implicit none
  include 'mpif.h'
  include 'fortran_collectives.inc'
end program
