! An ordinary Fortran program that includes mpif.h.
      program fortran_mpifh
      implicit none
      include 'mpif.h'
      integer ierr, rank, size, i, wrong
      integer ints(100), int_sums(100)
      double precision doubles(100)
      real reals(100), real_maxima(100)
      integer*2 shorts(100), short_sums(100)
      integer r, bits
      logical truth
      call mpi_init(ierr)
      call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
      call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
      wrong = 0
      do i = 1, 100
        ints(i) = i + rank
        shorts(i) = int(i, 2)
        doubles(i) = i * 0.5d0
        reals(i) = real(i * (rank + 1))
      end do
      call mpi_allreduce(ints, int_sums, 100, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, ierr)
      if (ierr .ne. MPI_SUCCESS) wrong = wrong + 1
      call mpi_allreduce(MPI_IN_PLACE, doubles, 100,
     &                   MPI_DOUBLE_PRECISION, MPI_SUM,
     &                   MPI_COMM_WORLD, ierr)
      call mpi_allreduce(reals, real_maxima, 100, MPI_REAL, MPI_MAX,
     &                   MPI_COMM_WORLD, ierr)
      do i = 1, 100
        if (int_sums(i) .ne. size * i + size * (size - 1) / 2)
     &    wrong = wrong + 1
        if (doubles(i) .ne. size * (i * 0.5d0)) wrong = wrong + 1
        if (real_maxima(i) .ne. real(i * size)) wrong = wrong + 1
      end do
      call mpi_allreduce(MPI_IN_PLACE, ints, 100, MPI_INTEGER,
     &                   MPI_BAND, MPI_COMM_WORLD, ierr)
      call mpi_allreduce(shorts, short_sums, 100, MPI_INTEGER2,
     &                   MPI_SUM, MPI_COMM_WORLD, ierr)
      do i = 1, 100
        bits = i
        do r = 1, size - 1
          bits = iand(bits, i + r)
        end do
        if (ints(i) .ne. bits) wrong = wrong + 1
        if (short_sums(i) .ne. size * i) wrong = wrong + 1
      end do
!     Compilers represent .true. differently; native MPI knows how.
      call mpi_allreduce(rank .ge. 0, truth, 1, MPI_LOGICAL,
     &                   MPI_LAND, MPI_COMM_WORLD, ierr)
      if (.not. truth) wrong = wrong + 1
      if (rank .eq. 0) then
        print '(a)', 'expect taken 6 2204'
        print '(a,i0)', 'wrong ', wrong
      end if
      call mpi_finalize(ierr)
      if (wrong .ne. 0) stop 1
      end program
