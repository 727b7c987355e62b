#include "lib/comm/setup/agreement.hpp"

#include <gtest/gtest.h>

#include "lib/comm/control/wait_limits.hpp"

namespace agreement_test {
namespace {

using hips::Code;
using hips::Status;
using hips::comm::compare_terms;
using hips::comm::Terms;

TEST(Agreement, EqualTermsAgree) {
  const std::vector<Terms> terms(4, Terms{{"topology", "bcube:2,1"}, {"pattern", "mesh"}});
  EXPECT_TRUE(compare_terms(terms).ok());
}

TEST(Agreement, TheErrorNamesTheMismatchingRankAndTheTerm) {
  std::vector<Terms> terms(9, Terms{{"topology", "bcube:3,1"}, {"pattern", "mesh"}});
  terms[3][1].second = "ring";
  const Status status = compare_terms(terms);
  EXPECT_EQ(status.code, Code::kMismatch);
  EXPECT_EQ(status.rank, 3);
  EXPECT_EQ(status.message,
            "the ranks disagree on the pattern: rank 3 has \"ring\", the 8 others have \"mesh\"");
}

TEST(Agreement, RankZeroIsTheReferenceOfTwoRanks) {
  const std::vector<Terms> terms{{{"credits", "4"}}, {{"credits", "2"}}};
  EXPECT_EQ(compare_terms(terms).message,
            "the ranks disagree on the credits: rank 1 has \"2\", rank 0 has \"4\"");
}

TEST(Agreement, TheErrorNamesAllMismatchingGroups) {
  std::vector<Terms> terms(7, Terms{{"topology", "a"}});
  terms[1][0].second = "b";
  terms[5][0].second = "b";
  terms[6][0].second = "c";
  EXPECT_EQ(
      compare_terms(terms).message,
      "the ranks disagree on the topology: rank 6 has \"c\", ranks 1 and 5 have \"b\", the 4 others have "
      "\"a\"");
}

TEST(Agreement, TheErrorNamesTheFailedRank) {
  std::vector<Status> statuses(3);
  statuses[2] = Status::error(Code::kInvalidArgument, "bad spec");
  EXPECT_EQ(hips::comm::first_failure(statuses).message, "rank 2: bad spec");
  // If all ranks fail alike, the error names none of them.
  EXPECT_EQ(hips::comm::first_failure(std::vector<Status>(3, statuses[2])).message, "bad spec");
  EXPECT_TRUE(hips::comm::first_failure(std::vector<Status>(3)).ok());
}

TEST(Agreement, LongListsOfRanksAreShortened) {
  const std::vector<hips::Rank> many{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(hips::comm::ranks_text(many), "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
}

TEST(Agreement, TheReaderReturnsEncodedTermsAndRejectsTruncatedOnes) {
  hips::comm::ByteWriter writer;
  const Terms terms{{"a", "1"}, {"b", ""}};
  hips::comm::put_terms(writer, terms);
  hips::comm::ByteReader reader(writer.blob());
  EXPECT_EQ(hips::comm::get_terms(reader), terms);
  EXPECT_TRUE(reader.ok());
  // Every shorter prefix is rejected; none crashes.
  for (std::size_t length = 0; length < writer.blob().size(); ++length) {
    hips::comm::ByteReader cut(std::span(writer.blob()).first(length));
    (void)hips::comm::get_terms(cut);
    EXPECT_FALSE(cut.ok()) << length;
  }
}

TEST(WaitLimits, ARankQueriesEverySecondAndWarnsOnceAfterAMinute) {
  hips::comm::WaitLimits wait_limits;
  int asked = 0, asked_all = 0, warned = 0;
  std::int64_t warned_at_s = 0;
  // A rank is 90 s late; the waiting rank checks five times per second.
  for (std::int64_t ns = 0; ns <= 90'000'000'000; ns += 200'000'000) {
    const auto actions = wait_limits.at(ns);
    asked += actions.ask;
    asked_all += actions.ask_all;
    warned += actions.warn;
    if (actions.warn) warned_at_s = ns / 1'000'000'000;
    if (ns < 1'000'000'000) {
      EXPECT_EQ(asked, 0);
    }
  }
  EXPECT_EQ(asked, 90);
  EXPECT_EQ(asked_all, 1);
  EXPECT_EQ(warned, 1);
  EXPECT_EQ(warned_at_s, 60);
}

}  // namespace
}  // namespace agreement_test
