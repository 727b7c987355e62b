! Requests of allreduces and messages together, with the module mpi_f08.
  program fortran_requests
  use mpi_f08
#ifdef OPEN_MPI
  use mpi_f08_ext
#define mpi_allreduce_init mpix_allreduce_init
#endif
  implicit none
  integer rank, nranks, i, wrong, left, num, place, at
  type(MPI_Request) :: requests(4), persistent(1)
  type(MPI_Status) :: statuses(4), status
  integer places(4), one(1), total(1)
  integer sums(50), maxima(50), message, got, right, before
  logical flag
! MPI writes there while the compiler does not expect it.
  volatile total, sums, maxima, got
  call mpi_init()
  call mpi_comm_rank(MPI_COMM_WORLD, rank)
  call mpi_comm_size(MPI_COMM_WORLD, nranks)
  wrong = 0
  one(1) = 1
  call mpi_allreduce(one, total, 1, MPI_INTEGER, MPI_SUM, &
         MPI_COMM_WORLD)
  call mpi_allreduce_init(one, total, 1, MPI_INTEGER, MPI_SUM, &
         MPI_COMM_WORLD, MPI_INFO_NULL, persistent(1))
  right = mod(rank + 1, nranks)
  before = mod(rank + nranks - 1, nranks)
  do i = 1, 8
    sums = i + rank
    maxima = i * (rank + 1)
    message = i * rank
    got = -1
    total(1) = 0
    call mpi_irecv(got, 1, MPI_INTEGER, right, i, MPI_COMM_WORLD, &
         requests(1))
    call mpi_iallreduce(MPI_IN_PLACE, sums, 50, MPI_INTEGER, &
         MPI_SUM, MPI_COMM_WORLD, requests(2))
    call mpi_isend(message, 1, MPI_INTEGER, before, i, &
         MPI_COMM_WORLD, requests(3))
    call mpi_iallreduce(MPI_IN_PLACE, maxima, 50, MPI_INTEGER, &
         MPI_MAX, MPI_COMM_WORLD, requests(4))
    if (i == 1) then
      call mpi_waitall(4, requests, statuses)
      if (statuses(1)%MPI_SOURCE /= right) wrong = wrong + 1
      if (statuses(1)%MPI_TAG /= i) wrong = wrong + 1
    else if (i == 2) then
      call mpi_waitall(4, requests, MPI_STATUSES_IGNORE)
    else if (i == 3) then
      do left = 4, 1, -1
        call mpi_waitany(4, requests, place, status)
#ifndef MPICH
! MPICH 4.0 counts from 0.
        if (requests(place) /= MPI_REQUEST_NULL) wrong = wrong+1
#endif
      end do
      call mpi_waitany(4, requests, place, status)
      if (place /= MPI_UNDEFINED) wrong = wrong + 1
    else if (i == 4) then
      left = 4
      do while (left > 0)
        call mpi_waitsome(4, requests, num, places, statuses)
        do at = 1, num
#ifndef MPICH
          if (requests(places(at)) /= MPI_REQUEST_NULL) &
         wrong = wrong + 1
#endif
        end do
        left = left - num
      end do
    else if (i == 5) then
      do at = 1, 4
        flag = .false.
        do while (.not. flag)
          call mpi_test(requests(at), flag, MPI_STATUS_IGNORE)
        end do
      end do
    else if (i == 6) then
      flag = .false.
      do while (.not. flag)
        call mpi_testall(4, requests, flag, MPI_STATUSES_IGNORE)
      end do
    else if (i == 7) then
      left = 4
      do while (left > 0)
        call mpi_testany(4, requests, place, flag, status)
        if (flag) left = left - 1
        if (left == 0) exit
        call mpi_testsome(4, requests, num, places, statuses)
        left = left - num
      end do
    else
      flag = .false.
      do while (.not. flag)
        call mpi_request_get_status(requests(2), flag, status)
      end do
      do at = 1, 4
        call mpi_wait(requests(at), MPI_STATUS_IGNORE)
      end do
    end if
    do at = 1, 4
      if (requests(at) /= MPI_REQUEST_NULL) wrong = wrong + 1
    end do
    if (mod(i, 2) == 0) then
      call mpi_start(persistent(1))
    else
      call mpi_startall(1, persistent)
    end if
    call mpi_wait(persistent(1), MPI_STATUS_IGNORE)
    if (total(1) /= nranks) wrong = wrong + 1
    if (got /= i * right) wrong = wrong + 1
    if (sums(50) /= nranks * i + nranks * (nranks - 1) / 2) &
         wrong = wrong + 1
    if (maxima(1) /= i * nranks) wrong = wrong + 1
  end do
  call mpi_request_free(persistent(1))
  if (persistent(1) /= MPI_REQUEST_NULL) wrong = wrong + 1
  if (rank == 0) then
    print '(a)', 'expect taken 25 3236'
    print '(a,i0)', 'wrong ', wrong
  end if
  call mpi_finalize()
  if (wrong /= 0) stop 1
  end program
