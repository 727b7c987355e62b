! Requests of allreduces and messages together, with mpif.h.
      program fortran_requests
      implicit none
      include 'mpif.h'
#ifdef OPEN_MPI
      include 'mpif-ext.h'
#define mpi_allreduce_init mpix_allreduce_init
#endif
      integer ierr, rank, nranks, i, wrong, left, num, place, at
      integer requests(4), statuses(MPI_STATUS_SIZE, 4), persistent
      integer status(MPI_STATUS_SIZE), places(4), one(1), total(1)
      integer sums(50), maxima(50), message, got, right, before
      logical flag
! MPI writes there while the compiler does not expect it.
      volatile total, sums, maxima, got
      call mpi_init(ierr)
      call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
      call mpi_comm_size(MPI_COMM_WORLD, nranks, ierr)
      wrong = 0
      one(1) = 1
      call mpi_allreduce(one, total, 1, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, ierr)
      call mpi_allreduce_init(one, total, 1, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, MPI_INFO_NULL, persistent,
     &                   ierr)
      right = mod(rank + 1, nranks)
      before = mod(rank + nranks - 1, nranks)
      do i = 1, 8
        sums = i + rank
        maxima = i * (rank + 1)
        message = i * rank
        got = -1
        total(1) = 0
        call mpi_irecv(got, 1, MPI_INTEGER, right, i, MPI_COMM_WORLD,
     &                 requests(1), ierr)
        call mpi_iallreduce(MPI_IN_PLACE, sums, 50, MPI_INTEGER,
     &                 MPI_SUM, MPI_COMM_WORLD, requests(2), ierr)
        call mpi_isend(message, 1, MPI_INTEGER, before, i,
     &                 MPI_COMM_WORLD, requests(3), ierr)
        call mpi_iallreduce(MPI_IN_PLACE, maxima, 50, MPI_INTEGER,
     &                 MPI_MAX, MPI_COMM_WORLD, requests(4), ierr)
        if (i .eq. 1) then
          call mpi_waitall(4, requests, statuses, ierr)
          if (statuses(MPI_SOURCE, 1) .ne. right) wrong = wrong + 1
          if (statuses(MPI_TAG, 1) .ne. i) wrong = wrong + 1
        else if (i .eq. 2) then
          call mpi_waitall(4, requests, MPI_STATUSES_IGNORE, ierr)
        else if (i .eq. 3) then
          do left = 4, 1, -1
            call mpi_waitany(4, requests, place, status, ierr)
            if (requests(place) .ne. MPI_REQUEST_NULL) wrong = wrong+1
          end do
          call mpi_waitany(4, requests, place, status, ierr)
#ifndef MPICH
! MPICH 4.0 adds 1 to MPI_UNDEFINED.
          if (place .ne. MPI_UNDEFINED) wrong = wrong + 1
#endif
        else if (i .eq. 4) then
          left = 4
          do while (left .gt. 0)
            call mpi_waitsome(4, requests, num, places, statuses, ierr)
            do at = 1, num
              if (requests(places(at)) .ne. MPI_REQUEST_NULL)
     &          wrong = wrong + 1
            end do
            left = left - num
          end do
        else if (i .eq. 5) then
          do at = 1, 4
            flag = .false.
            do while (.not. flag)
              call mpi_test(requests(at), flag, MPI_STATUS_IGNORE, ierr)
            end do
          end do
        else if (i .eq. 6) then
          flag = .false.
          do while (.not. flag)
            call mpi_testall(4, requests, flag, MPI_STATUSES_IGNORE,
     &                       ierr)
          end do
        else if (i .eq. 7) then
          left = 4
          do while (left .gt. 0)
            call mpi_testany(4, requests, place, flag, status, ierr)
            if (flag) left = left - 1
            if (left .eq. 0) exit
            call mpi_testsome(4, requests, num, places, statuses, ierr)
            left = left - num
          end do
        else
          flag = .false.
          do while (.not. flag)
            call mpi_request_get_status(requests(2), flag, status, ierr)
          end do
          do at = 1, 4
            call mpi_wait(requests(at), MPI_STATUS_IGNORE, ierr)
          end do
        end if
        do at = 1, 4
          if (requests(at) .ne. MPI_REQUEST_NULL) wrong = wrong + 1
        end do
        if (mod(i, 2) .eq. 0) then
          call mpi_start(persistent, ierr)
        else
          call mpi_startall(1, persistent, ierr)
        end if
        call mpi_wait(persistent, MPI_STATUS_IGNORE, ierr)
        if (total(1) .ne. nranks) wrong = wrong + 1
        if (got .ne. i * right) wrong = wrong + 1
        if (sums(50) .ne. nranks * i + nranks * (nranks - 1) / 2)
     &    wrong = wrong + 1
        if (maxima(1) .ne. i * nranks) wrong = wrong + 1
      end do
      call mpi_request_free(persistent, ierr)
      if (persistent .ne. MPI_REQUEST_NULL) wrong = wrong + 1
      if (rank .eq. 0) then
        print '(a)', 'expect taken 25 3236'
        print '(a,i0)', 'wrong ', wrong
      end if
      call mpi_finalize(ierr)
      if (wrong .ne. 0) stop 1
      end program
