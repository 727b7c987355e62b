! An ordinary Fortran program of functions of its own, pairs, logicals and complex numbers, with the module mpi_f08.
program fortran_functions
  use mpi_f08
  implicit none
  procedure(MPI_User_function) :: compose
  type(MPI_Op) :: op
  type(MPI_Datatype) :: map
  type(MPI_Request) :: request
  character(len=8) :: argument
  logical :: frees_early
  include 'functions.inc'
end program

subroutine compose(left_at, right_at, length, kind)
  use, intrinsic :: iso_c_binding
  use mpi_f08
  implicit none
  type(c_ptr), value :: left_at, right_at
  integer :: length, i
  type(MPI_Datatype) :: kind
  integer, pointer :: left(:, :), right(:, :)
  call c_f_pointer(left_at, left, [2, length])
  call c_f_pointer(right_at, right, [2, length])
  do i = 1, length
    right(:, i) = [left(1, i) * right(1, i), right(1, i) * left(2, i) + right(2, i)]
  end do
end subroutine
