#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <string>

#include "lib/mpi/calls/collective_arguments.hpp"
#include "lib/mpi/calls/reduction_calls.hpp"
#include "lib/mpi/native/abi.hpp"
#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/native/predefined.hpp"
#include "lib/mpi/process/call_report.hpp"
#include "lib/mpi/process/preload.hpp"
#include "lib/mpi/requests/request_handle.hpp"

namespace hips::mpi {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Preload, OnlyTheInterposerIsRemovedFromLdPreload) {
  const std::string name(kInterposerName);
  EXPECT_EQ(without_interposer("/l/" + name), "");
  EXPECT_EQ(without_interposer("a.so:/l/" + name + ":b.so"), "a.so:b.so");
  EXPECT_EQ(without_interposer("a.so /l/" + name + " b.so"), "a.so:b.so");
  EXPECT_EQ(without_interposer("/" + name + "/a.so"), "/" + name + "/a.so");
  EXPECT_EQ(without_interposer(""), "");
}

TEST(NativeVersion, NameAndVersionAreTakenFromTheLibrarysText) {
  EXPECT_EQ(native_version_of("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"), "Open MPI v4.1.4");
  EXPECT_EQ(native_version_of("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr 7"), "MPICH 4.0.2");
  EXPECT_EQ(native_version_of("MPICH Version:      4.0.2\n"), "MPICH 4.0.2");
  EXPECT_EQ(native_version_of(""), "");
}

TEST(Predefined, HandlesAreThoseOfTheAbi) {
  // No MPI is loaded here: objects that have to be looked up are missing, and numbers of mpi.h are not.
  const Predefined<MPI_Datatype> type HIPS_MPI_PREDEFINED(MPI_INT, "ompi_mpi_int");
#ifdef HIPS_MPI_ABI_OPENMPI
  EXPECT_EQ(type.handle(), MPI_Datatype{});
#else
  EXPECT_EQ(type.handle(), MPI_INT);
#endif
  EXPECT_FALSE(native_has_our_abi());
  EXPECT_EQ(native_mpi(), nullptr);
}

TEST(Context, AHandlePassesThroughAPointer) {
  EXPECT_EQ(from_context<int>(to_context(0x44000000)), 0x44000000);
  EXPECT_EQ(from_context<int>(to_context(-1)), -1);
  int object = 0;
  EXPECT_EQ(from_context<int*>(to_context(&object)), &object);
}

TEST(CollectiveArguments, ArraysOfIntsAndOfLargeCountsGiveTheSameNumbers) {
  const int counts[] = {1, -2, 3}, displs[] = {7, -8, 9};
  const MPI_Count large_counts[] = {1, -2, 3'000'000'000};
  const MPI_Aint large_displs[] = {7, -8, 9'000'000'000};
  const CollectiveArguments small{.counts = counts, .displs = displs};
  const CollectiveArguments large{.counts = large_counts, .displs = large_displs, .is_large = true};
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(small.count_of(rank), counts[rank]);
    EXPECT_EQ(large.count_of(rank), counts[rank]);
    EXPECT_EQ(small.displacement_of(rank), displs[rank]);
    EXPECT_EQ(large.displacement_of(rank), displs[rank]);
  }
  EXPECT_EQ(large.count_of(2), 3'000'000'000);
  EXPECT_EQ(large.displacement_of(2), 9'000'000'000);
}

TEST(Count, ACountBeyondAnyMemoryIsInvalid) {
  EXPECT_TRUE(is_valid_count(0, 0));
  EXPECT_TRUE(is_valid_count(3'000'000'000, 8));
  EXPECT_TRUE(is_valid_count(std::int64_t{1} << 44, 8));
  EXPECT_FALSE(is_valid_count((std::int64_t{1} << 44) + 1, 8));
  EXPECT_FALSE(is_valid_count(-1, 1));
  EXPECT_FALSE(is_valid_count(INT64_MAX, 1));
  EXPECT_FALSE(is_valid_count(INT64_MAX, INT_MAX));
}

TEST(Count, AReductionAcceptsTheSameCounts) {
  // As find_reduction() sets it for a type of 8 bytes.
  const Reduction reduction{.size = 8, .most_counts = static_cast<std::uint64_t>(kMostBytes) / 8};
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{3'000'000'000}, std::int64_t{1} << 44,
                                   (std::int64_t{1} << 44) + 1, std::int64_t{-1}, INT64_MAX, INT64_MIN})
    EXPECT_EQ(eligibility_of(reduction, count, false) == Eligibility::kEligible, is_valid_count(count, 8))
        << count;
  EXPECT_EQ(eligibility_of(reduction, 0, false), Eligibility::kNothingToMove);
  EXPECT_EQ(eligibility_of(reduction, -1, false), Eligibility::kInvalidArgument);
  EXPECT_EQ(eligibility_of({.eligibility = Eligibility::kOtherOp}, 1, false), Eligibility::kOtherOp);
  EXPECT_EQ(eligibility_of({.eligibility = Eligibility::kOtherType}, 0, false), Eligibility::kOtherType);
  EXPECT_EQ(eligibility_of(reduction, 1, true), Eligibility::kInvalidArgument);
}

TEST(RequestHandles, PointersAreInARangeOfTheirOwn) {
  long entries[8] = {};
  const RequestHandles<long*> handles(reinterpret_cast<std::uintptr_t>(entries), sizeof(long), 8);
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(handles.contains(handles.at(i)));
    EXPECT_EQ(handles.index_of(handles.at(i)), i);
  }
  EXPECT_FALSE(handles.contains(nullptr));
  EXPECT_FALSE(handles.contains(entries + 8));
  EXPECT_FALSE(handles.contains(entries - 1));
}

TEST(RequestHandles, IntsDifferFromAllHandlesOfMpich) {
  constexpr int kMost = 1 << 18;
  const RequestHandles<int> handles(RequestHandles<int>::kFirstInt, 1, kMost);
  for (const int i : {0, 1, 4711, kMost - 1}) {
    EXPECT_TRUE(handles.contains(handles.at(i)));
    EXPECT_EQ(handles.index_of(handles.at(i)), i);
    // The two highest bits of handles of objects are not 0.
    EXPECT_EQ(static_cast<unsigned>(handles.at(i)) >> 30U, 0U);
  }
  for (const unsigned native :
       {0x2c000000U, 0x6c000000U, 0x6c000001U, 0x98000000U, 0xac000000U, 0xac080003U, 0U})
    EXPECT_FALSE(handles.contains(static_cast<int>(native))) << native;
  EXPECT_FALSE(handles.contains(handles.at(0) - 1));
  EXPECT_FALSE(handles.contains(handles.at(kMost)));
}

TEST(RequestHandles, FortranGetsNegativeNumbers) {
  for (const int i : {0, 1, 4711, (1 << 18) - 1}) {
    EXPECT_TRUE(FortranHandles::contains(FortranHandles::at(i)));
    EXPECT_EQ(FortranHandles::index_of(FortranHandles::at(i)), i);
  }
  EXPECT_FALSE(FortranHandles::contains(0));
  EXPECT_FALSE(FortranHandles::contains(1 << 30));
}

TEST(CallReport, NonBlockingCallsAndStartsAreCountedSeparately) {
  CallReport report;
  report.add_taken("A", 4, "plan", {.calls = 3, .bytes = 24, .time_ns = 1000});
  EXPECT_THAT(report.text("Open MPI v4.1.4", 0, 4), Not(HasSubstr("of these")));
  report.add_taken("A", 4, "plan", {.calls = 3, .bytes = 24, .time_ns = 1000, .nonblocking = 2, .starts = 1});
  EXPECT_THAT(report.text("Open MPI v4.1.4", 0, 4),
              HasSubstr("taken 6 calls, 48 bytes, 0.000002 s\n"
                        "hips report:   of these 2 non-blocking, 1 of persistent requests\n"));
}

TEST(CallReport, CallsOfCommunicatorsThatLookAlikeAreSummed) {
  CallReport report;
  for (int i = 0; i < 1000; ++i)
    report.add_taken("unnamed communicator", 4, "HiPS on a switch", {2, 80, 1000});
  report.add_taken("MPI_COMM_WORLD", 8, "HiPS on BCube(2,2)", {1, 4, 500});
  report.add_taken("never used", 8, "HiPS on BCube(2,2)", {});
  report.add_delegated("type MPI_CHAR");
  report.add_delegated("type MPI_CHAR");
  report.add_delegated("count 0");
  const std::string text = report.text("Open MPI v4.1.4", 0, 8);
  EXPECT_THAT(text, HasSubstr("taken 2001 calls, 80004 bytes"));
  EXPECT_THAT(text, HasSubstr("unnamed communicator, 4 ranks: 2000 calls, 80000 bytes"));
  EXPECT_THAT(text, HasSubstr("MPI_COMM_WORLD, 8 ranks: 1 call, 4 bytes"));
  EXPECT_THAT(text, Not(HasSubstr("never used")));
  EXPECT_THAT(text, HasSubstr("delegated to native MPI 3 calls"));
  EXPECT_THAT(text, HasSubstr("2 calls: type MPI_CHAR"));
  EXPECT_THAT(text, HasSubstr("1 call: count 0"));
}

TEST(CallReport, AReportOfAThousandReasonsIsShort) {
  CallReport report;
  for (int i = 0; i < 1000; ++i) {
    report.add_delegated("reason " + std::to_string(i));
    report.add_taken("comm " + std::to_string(i), 2, "plan", {1, 4, 1});
  }
  const std::string text = report.text("Open MPI", 0, 2);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 100);
  EXPECT_THAT(text, HasSubstr("and 968 other communicators"));
  EXPECT_THAT(text, HasSubstr("and 968 other reasons"));
}

}  // namespace
}  // namespace hips::mpi
