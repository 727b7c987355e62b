! An ordinary Fortran program of functions of its own, pairs, logicals and complex numbers, with the module mpi.
program fortran_functions
  use mpi
  implicit none
  external :: compose
  integer :: op, map, request
  character(len=8) :: argument
  logical :: frees_early
  include 'functions.inc'
end program

subroutine compose(left, right, length, kind)
  implicit none
  integer :: length, kind, i
  integer :: left(2, length), right(2, length)
  do i = 1, length
    right(:, i) = [left(1, i) * right(1, i), right(1, i) * left(2, i) + right(2, i)]
  end do
end subroutine
