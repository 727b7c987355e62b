! An ordinary Fortran program that uses the module mpi_f08.
program fortran_mpi_f08
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  integer :: rank, nranks, i, wrong, ierr
  real(kind=8) :: doubles(60), sums(30)
  integer :: ints(60)
  complex :: pairs(60) = (1, 2)
  type(MPI_Win) :: window
  type(c_ptr) :: memory
  real(kind=8), pointer :: pieces(:)
  call mpi_init()
  call mpi_comm_rank(MPI_COMM_WORLD, rank)
  call mpi_comm_size(MPI_COMM_WORLD, nranks)
  wrong = 0
  ! Memory of native MPI and of HiPS.
  do i = 1, 2
    call mpi_alloc_mem(int(8 * 100 ** i * i * i, MPI_ADDRESS_KIND), MPI_INFO_NULL, memory, ierr)
    call c_f_pointer(memory, pieces, [100 ** i * i * i])
    pieces = i
    call mpi_free_mem(pieces, ierr)
    if (ierr /= MPI_SUCCESS) wrong = wrong + 1
  end do
  ! Windows stay native MPI's.
  call mpi_win_create(doubles, 480_MPI_ADDRESS_KIND, 8, MPI_INFO_NULL, MPI_COMM_WORLD, window, ierr)
  if (ierr /= MPI_SUCCESS) wrong = wrong + 1
  call mpi_win_free(window, ierr)
  call mpi_win_allocate(80_MPI_ADDRESS_KIND, 8, MPI_INFO_NULL, MPI_COMM_WORLD, memory, window, ierr)
  call c_f_pointer(memory, pieces, [10])
  pieces = rank
  call mpi_win_free(window, ierr)
  if (ierr /= MPI_SUCCESS) wrong = wrong + 1
  do i = 1, 60
    doubles(i) = i + rank
    ints(i) = i * (rank + 1)
  end do
  ! Every other element, which the compiler packs; ierror is absent. The module of MPICH 4.0 has it packed wrongly.
#ifdef MPICH
  doubles(1:30) = doubles(1:60:2)
  call mpi_allreduce(doubles(1:30), sums, 30, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
#else
  call mpi_allreduce(doubles(1:60:2), sums, 30, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
#endif
  call mpi_allreduce(MPI_IN_PLACE, ints, 60, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (ierr /= MPI_SUCCESS) wrong = wrong + 1
  do i = 1, 30
    if (sums(i) /= nranks * (2 * i - 1) + nranks * (nranks - 1) / 2) wrong = wrong + 1
  end do
  do i = 1, 60
    if (ints(i) /= i * nranks * (nranks + 1) / 2) wrong = wrong + 1
  end do
  call mpi_allreduce(MPI_IN_PLACE, ints, 60, MPI_INTEGER, MPI_BOR, MPI_COMM_WORLD)
  call mpi_allreduce(MPI_IN_PLACE, pairs, 60, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) then
    print '(a)', 'expect taken 4 1200'
    print '(a,i0)', 'wrong ', wrong
  end if
  call mpi_finalize()
  if (wrong /= 0) stop 1
end program
