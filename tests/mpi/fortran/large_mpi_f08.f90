! A Fortran program with counts of kind MPI_COUNT_KIND, for which the module mpi_f08 of MPI 4 has other functions.
program fortran_large_mpi_f08
  use mpi_f08
  implicit none
  integer, parameter :: starts = 2
  integer(kind=MPI_COUNT_KIND), parameter :: many = 1000, no_integer = 3000000000_MPI_COUNT_KIND
  integer(kind=MPI_COUNT_KIND), allocatable :: counts(:)
  integer(kind=MPI_ADDRESS_KIND), allocatable :: displs(:)
  integer :: rank, nranks, wrong, i, values(many), sums(many)
  integer, allocatable :: parts(:)
  type(MPI_Request) :: request
  type(MPI_Datatype) :: empty
  call mpi_init()
  call mpi_comm_rank(MPI_COMM_WORLD, rank)
  call mpi_comm_size(MPI_COMM_WORLD, nranks)
  wrong = 0

  call fill(1)
  call mpi_allreduce(values, sums, many, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call check(1)

  call fill(2)
  call mpi_iallreduce(values, sums, many, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request)
  call mpi_wait(request, MPI_STATUS_IGNORE)
  call check(2)

  call mpi_allreduce_init(values, sums, many, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request)
  do i = 1, starts
    call fill(2 + i)
    call mpi_start(request)
    call mpi_wait(request, MPI_STATUS_IGNORE)
    call check(2 + i)
  end do
  call mpi_request_free(request)

  ! Rank r contributes r + 1 elements.
  allocate (counts(nranks), displs(nranks), parts(nranks * (nranks + 1) / 2))
  counts = [(int(i, MPI_COUNT_KIND), i = 1, nranks)]
  displs = [(int(i * (i - 1) / 2, MPI_ADDRESS_KIND), i = 1, nranks)]
  values = rank
  call mpi_allgatherv(values, counts(rank + 1), MPI_INTEGER, parts, counts, displs, MPI_INTEGER, MPI_COMM_WORLD)
  do i = 1, nranks
    wrong = wrong + count(parts(displs(i) + 1:displs(i) + counts(i)) /= i - 1)
  end do

  call mpi_type_contiguous(0, MPI_INTEGER, empty)
  call mpi_type_commit(empty)
  call mpi_bcast(sums, no_integer, empty, 0, MPI_COMM_WORLD)
  call mpi_type_free(empty)

  if (rank == 0) then
    print '(a,i0,a,i0)', 'expect taken ', 3 + starts, ' ', 4 * ((2 + starts) * int(many) + size(parts))
    print '(a)', 'expect delegated 1 MPI_Bcast: no data'
    print '(a,i0)', 'wrong ', wrong
  end if
  call mpi_finalize()
  if (wrong /= 0) stop 1

contains

  subroutine fill(salt)
    integer, intent(in) :: salt
    integer :: i
    values = [((rank + 1) * i + salt, i = 1, int(many))]
    sums = -1
  end subroutine

  subroutine check(salt)
    integer, intent(in) :: salt
    integer :: i
    wrong = wrong + count(sums /= [(nranks * (nranks + 1) / 2 * i + nranks * salt, i = 1, int(many))])
  end subroutine
end program
