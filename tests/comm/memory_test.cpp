// hips_mem_register and related functions, in C and C++: what they reject, and the reasons that they give.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <hips/hips.hpp>

namespace memory_test {
namespace {

using testing::HasSubstr;

constexpr std::size_t kBytes = 10'000;

TEST(Memory, is_registered_and_deregistered_and_its_handle_is_then_null) {
  std::vector<char> memory(kBytes);
  hips_mem_t mem = nullptr;
  ASSERT_EQ(hips_mem_register(memory.data(), kBytes, &mem), HIPS_OK);
  EXPECT_NE(mem, nullptr);
  EXPECT_EQ(hips_mem_deregister(&mem), HIPS_OK);
  EXPECT_EQ(mem, nullptr);
  EXPECT_EQ(hips_mem_deregister(&mem), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(hips_last_error(), HasSubstr("*mem is null"));
}

TEST(Memory, is_rejected_if_null_empty_or_too_large_and_leaves_the_handle_unchanged) {
  char byte = 0;
  hips_mem_t mem = nullptr;
  EXPECT_EQ(hips_mem_register(nullptr, kBytes, &mem), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(hips_last_error(), HasSubstr("the address is null"));
  EXPECT_EQ(hips_mem_register(&byte, 0, &mem), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(hips_last_error(), HasSubstr("0 bytes"));
  EXPECT_EQ(hips_mem_register(&byte, SIZE_MAX, &mem), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(hips_last_error(), HasSubstr("exceed the address space"));
  EXPECT_EQ(hips_mem_register(&byte, 1, nullptr), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(hips_last_error(), HasSubstr("mem is null"));
  EXPECT_EQ(hips_mem_deregister(nullptr), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(mem, nullptr);
}

TEST(Memory, is_rejected_if_it_overlaps_but_not_if_it_is_adjacent) {
  std::vector<char> memory(kBytes);
  char* const middle = memory.data() + 4000;
  hips_mem_t mem = nullptr, other = nullptr;
  ASSERT_EQ(hips_mem_register(middle, 2000, &mem), HIPS_OK);
  const std::pair<std::ptrdiff_t, std::size_t> overlapping[] = {
      {0, 2000}, {-1, 2}, {1999, 1}, {1999, 2}, {-4000, 10'000}, {500, 100}, {0, 1}};
  for (const auto& [offset, bytes] : overlapping) {
    EXPECT_EQ(hips_mem_register(middle + offset, bytes, &other), HIPS_ERR_INVALID_ARGUMENT) << offset;
    EXPECT_THAT(hips_last_error(), HasSubstr("overlaps ["));
  }
  hips_mem_t before = nullptr, after = nullptr;
  EXPECT_EQ(hips_mem_register(middle - 10, 10, &before), HIPS_OK);
  EXPECT_EQ(hips_mem_register(middle + 2000, 10, &after), HIPS_OK);
  for (hips_mem_t* each : {&mem, &before, &after}) EXPECT_EQ(hips_mem_deregister(each), HIPS_OK);
}

TEST(Memory, cannot_be_deregistered_twice_by_a_copied_handle) {
  char byte = 0;
  hips_mem_t mem = nullptr;
  ASSERT_EQ(hips_mem_register(&byte, 1, &mem), HIPS_OK);
  hips_mem_t copy = mem;
  EXPECT_EQ(hips_mem_deregister(&mem), HIPS_OK);
  EXPECT_EQ(hips_mem_deregister(&copy), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(hips_last_error(), HasSubstr("deregistered already"));
  // The old handle does not deregister memory that was registered there since.
  ASSERT_EQ(hips_mem_register(&byte, 1, &mem), HIPS_OK);
  EXPECT_EQ(hips_mem_deregister(&copy), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(hips_mem_deregister(&mem), HIPS_OK);
}

TEST(Memory, is_allocated_zero_and_aligned_and_freed_once) {
  void* address = nullptr;
  ASSERT_EQ(hips_mem_alloc(kBytes, &address), HIPS_OK);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % 4096, 0U);
  for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(static_cast<char*>(address)[i], 0);
  hips_mem_t mem = nullptr;
  EXPECT_EQ(hips_mem_register(address, 1, &mem), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(hips_mem_free(static_cast<char*>(address) + 1), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(hips_last_error(), HasSubstr("not from hips_mem_alloc"));
  EXPECT_EQ(hips_mem_free(address), HIPS_OK);
  EXPECT_EQ(hips_mem_free(address), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(hips_mem_free(nullptr), HIPS_OK);
  EXPECT_EQ(hips_mem_alloc(0, &address), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(hips_mem_alloc(SIZE_MAX, &address), HIPS_ERR_OUT_OF_MEMORY);
  EXPECT_EQ(hips_mem_alloc(SIZE_MAX / 2, &address), HIPS_ERR_OUT_OF_MEMORY);
  EXPECT_EQ(hips_mem_alloc(1, nullptr), HIPS_ERR_INVALID_ARGUMENT);
}

TEST(Memory, is_not_freed_if_it_was_registered) {
  std::vector<char> memory(kBytes);
  hips_mem_t mem = nullptr;
  ASSERT_EQ(hips_mem_register(memory.data(), kBytes, &mem), HIPS_OK);
  EXPECT_EQ(hips_mem_free(memory.data()), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(hips_mem_deregister(&mem), HIPS_OK);
}

TEST(Memory, of_the_cpp_api_is_deregistered_by_its_object) {
  std::vector<float> memory(1000);
  {
    hips::RegisteredMemory first{std::span(memory)};
    EXPECT_THROW(hips::RegisteredMemory{std::span(memory).first(1)}, hips::Error);
    hips::RegisteredMemory second = std::move(first);
    EXPECT_THROW(hips::RegisteredMemory{std::span(memory)}, hips::Error);
  }
  hips::RegisteredMemory again{std::span(memory)};
  EXPECT_THROW(hips::RegisteredMemory{std::span<float>{}}, hips::Error);

  auto buffer = hips::allocate_registered<double>(100);
  EXPECT_EQ(buffer.size(), 100U);
  for (const double element : buffer) EXPECT_EQ(element, 0);
  auto other = std::move(buffer);
  other[99] = 5;
  EXPECT_EQ(other.span().back(), 5);
  EXPECT_THROW(hips::allocate_registered<double>(0), hips::Error);
  EXPECT_THROW(hips::allocate_registered<double>(SIZE_MAX / 4), hips::Error);
}

TEST(Memory, is_registered_by_many_threads_at_once) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      std::vector<char> memory(kBytes);
      for (int i = 0; i < 1000; ++i) {
        hips_mem_t mem = nullptr;
        ASSERT_EQ(hips_mem_register(memory.data(), kBytes, &mem), HIPS_OK);
        const auto buffer = hips::allocate_registered<char>(1 + static_cast<std::size_t>(i));
        ASSERT_EQ(hips_mem_deregister(&mem), HIPS_OK);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace memory_test
