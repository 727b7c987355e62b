! An ordinary Fortran program that uses the module mpi.
program fortran_mpi
  use mpi
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  integer :: ierr, rank, nranks, i, wrong, dup
  integer(kind=8) :: longs(50)
  real(kind=8) :: reals8(50), sums8(50)
  real(kind=4) :: reals4(50)
  integer(kind=4) :: ints(50)
  integer :: window
  type(c_ptr) :: memory
  real(kind=8), pointer :: pieces(:)
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, nranks, ierr)
  call mpi_comm_dup(MPI_COMM_WORLD, dup, ierr)
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
  call mpi_win_create(longs, 400_MPI_ADDRESS_KIND, 8, MPI_INFO_NULL, MPI_COMM_WORLD, window, ierr)
  if (ierr /= MPI_SUCCESS) wrong = wrong + 1
  call mpi_win_free(window, ierr)
  call mpi_win_allocate(80_MPI_ADDRESS_KIND, 8, MPI_INFO_NULL, MPI_COMM_WORLD, memory, window, ierr)
  call c_f_pointer(memory, pieces, [10])
  pieces = rank
  call mpi_win_free(window, ierr)
  if (ierr /= MPI_SUCCESS) wrong = wrong + 1
  do i = 1, 50
    longs(i) = i + rank
    reals8(i) = i * 0.25d0
    reals4(i) = real(i + rank)
    ints(i) = i - rank
  end do
  call mpi_allreduce(MPI_IN_PLACE, longs, 50, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, ierr)
  call mpi_allreduce(reals8, sums8, 50, MPI_REAL8, MPI_SUM, dup, ierr)
  call mpi_allreduce(MPI_IN_PLACE, reals4, 50, MPI_REAL4, MPI_MAX, dup, ierr)
  call mpi_allreduce(MPI_IN_PLACE, ints, 50, MPI_INTEGER4, MPI_MIN, MPI_COMM_WORLD, ierr)
  do i = 1, 50
    if (longs(i) /= nranks * i + nranks * (nranks - 1) / 2) wrong = wrong + 1
    if (sums8(i) /= nranks * (i * 0.25d0)) wrong = wrong + 1
    if (reals4(i) /= real(i + nranks - 1)) wrong = wrong + 1
    if (ints(i) /= i - (nranks - 1)) wrong = wrong + 1
  end do
  ! The profiling name is native MPI's function, which nothing intercepts. MPICH's of Fortran calls MPI_Allreduce of C.
  call pmpi_allreduce(MPI_IN_PLACE, ints, 50, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
  call mpi_allreduce(MPI_IN_PLACE, longs, 1, MPI_INTEGER8, MPI_SUM, MPI_COMM_SELF, ierr)
  call mpi_comm_free(dup, ierr)
  if (rank == 0) then
#ifdef MPICH
    print '(a)', 'expect taken 5 1400'
#else
    print '(a)', 'expect taken 4 1200'
#endif
    print '(a)', 'expect delegated 1 communicator of 1 rank'
    print '(a,i0)', 'wrong ', wrong
  end if
  call mpi_finalize(ierr)
  if (wrong /= 0) stop 1
end program
