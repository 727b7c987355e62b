#include "lib/base/os/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>

#include "tests/transports/child.hpp"
#include "tests/transports/world.hpp"

namespace hips::test {
namespace shared_memory_test {
namespace {

TEST(SharedMemoryTest, ANewSegmentIsZeroAndHasTheRequestedSize) {
  auto memory = SharedMemory::create(12'345);
  ASSERT_TRUE(memory.has_value()) << memory.error().message;
  EXPECT_EQ(memory->size(), 12'345u);
  EXPECT_EQ(std::ranges::count(memory->bytes(), std::byte{0}), 12'345);
  EXPECT_EQ(SharedMemory().size(), 0u);
  EXPECT_EQ(SharedMemory().fd(), -1);
}

TEST(SharedMemoryTest, ASegmentOfAnotherProcessIsMappedAndOutlivesIt) {
  Child child([](Channel& channel) {
    auto memory = SharedMemory::create(8192).value();
    memory.data()[100] = std::byte{42};
    channel.send_value(memory.name());
    (void)channel.receive();
    return memory.data()[101] == std::byte{43} ? 0 : 1;
  });
  const auto name = child.channel().receive_value<SharedMemoryName>();
  auto memory = SharedMemory::attach(name);
  ASSERT_TRUE(memory.has_value()) << memory.error().message;
  EXPECT_EQ(memory->size(), 8192u);
  EXPECT_EQ(memory->fd(), -1);
  memory->data()[101] = std::byte{43};
  child.channel().send({});
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(memory->data()[100], std::byte{42});
}

TEST(SharedMemoryTest, InOneProcessTheMappingIsSharedAndLivesAsLongAsItsLastUser) {
  auto memory = SharedMemory::create(4096).value();
  const SharedMemoryName name = memory.name();
  auto same = SharedMemory::attach(name).value();
  EXPECT_EQ(same.data(), memory.data());
  memory = SharedMemory();
  same.data()[4095] = std::byte{1};
  same = SharedMemory();
  EXPECT_EQ(SharedMemory::attach(name).error().code, Code::kPeerLost);
}

TEST(SharedMemoryTest, AReusedDescriptorOrProcessNumberIsDetected) {
  // Two children create segments with the same descriptor number and different contents.
  const auto run = [](Channel& channel) {
    auto memory = SharedMemory::create(4096).value();
    channel.send_value(memory.name());
    (void)channel.receive();
    return 0;
  };
  Child first(run);
  const auto old_name = first.channel().receive_value<SharedMemoryName>();
  Child second(run);
  SharedMemoryName name = second.channel().receive_value<SharedMemoryName>();
  // Simulates that the second process has the first one's number.
  SharedMemoryName mistaken = old_name;
  mistaken.file.pid = name.file.pid;
  mistaken.file.fd = name.file.fd;
  EXPECT_EQ(SharedMemory::attach(mistaken).error().code, Code::kPeerLost);
  // The same inode, too: only the token differs.
  mistaken.file = name.file;
  EXPECT_EQ(SharedMemory::attach(mistaken).error().code, Code::kPeerLost);
  // Another file has the descriptor number.
  mistaken = name;
  mistaken.file.fd = 2;
  EXPECT_EQ(SharedMemory::attach(mistaken).error().code, Code::kPeerLost);
  mistaken.file.fd = 900;
  EXPECT_EQ(SharedMemory::attach(mistaken).error().code, Code::kPeerLost);
  // Mapping more than the segment's size would raise SIGBUS at the first access.
  mistaken = name;
  mistaken.bytes += 1;
  EXPECT_EQ(SharedMemory::attach(mistaken).error().code, Code::kPeerLost);
  EXPECT_TRUE(SharedMemory::attach(name).has_value());
  first.channel().send({});
  EXPECT_EQ(first.wait(), 0);
  const Status gone = SharedMemory::attach(old_name).error();
  EXPECT_EQ(gone.code, Code::kPeerLost);
  EXPECT_THAT(gone.message, ::testing::HasSubstr("has ended"));
}

TEST(SharedMemoryTest, ASegmentCannotShrink) {
  auto memory = SharedMemory::create(8192).value();
  EXPECT_NE(ftruncate(memory.fd(), 0), 0);
  memory.data()[8191] = std::byte{1};
}

TEST(SharedMemoryTest, ErrorsNameTheInvalidInput) {
  EXPECT_EQ(SharedMemory::create(0).error().code, Code::kInvalidArgument);
  EXPECT_EQ(SharedMemory::create(SIZE_MAX).error().code, Code::kOutOfMemory);
  EXPECT_EQ(SharedMemory::attach({}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(SharedMemory::name_of(-1).error().code, Code::kSystem);
  const Status no_segment = SharedMemory::name_of(0).error();
  EXPECT_EQ(no_segment.code, Code::kInvalidArgument);
  EXPECT_THAT(no_segment.message, ::testing::HasSubstr("descriptor 0"));
}

TEST(SharedMemoryTest, ANameIsFoundByItsDescriptor) {
  auto memory = SharedMemory::create(4096).value();
  const auto name = SharedMemory::name_of(memory.fd()).value();
  EXPECT_EQ(name.file, memory.name().file);
  EXPECT_EQ(name.token, memory.name().token);
  EXPECT_EQ(name.bytes, 4096u);
  EXPECT_EQ(fcntl(memory.fd(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

}  // namespace
}  // namespace shared_memory_test
}  // namespace hips::test
